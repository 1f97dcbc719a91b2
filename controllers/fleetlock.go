package controllers

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	fleetlockserver "github.com/reboot-operator/reboot-operator/controllers/fleetlock/server"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
)

// FleetLockOptions are the flags of the FleetLock server.
type FleetLockOptions struct {
	// Address is the address to listen on; 0 turns the server off.
	Address string
	// Hold is the longest time that a request is held.
	Hold time.Duration
	// Requests lets a request count as a need for a reboot on hosts without Zincati.
	Requests bool
	// CheckSource refuses requests that do not come from an address of their Node.
	CheckSource bool
	// CertDir has tls.crt and tls.key for HTTPS. If it is empty, the server uses plain HTTP.
	CertDir string
}

func (o *FleetLockOptions) bind(flags *flag.FlagSet) {
	flags.StringVar(&o.Address, "fleetlock-bind-address", "0", "Address at which the FleetLock protocol is served to hosts, such as :8444; 0 turns it off.")
	flags.DurationVar(&o.Hold, "fleetlock-hold", fleetlockserver.DefaultHold, "How long a FleetLock request waits for permission before it is refused.")
	flags.BoolVar(&o.Requests, "fleetlock-requests", false, "Treat a FleetLock request as a request for a reboot. Zincati does not need this, because its staged update counts.")
	flags.BoolVar(&o.CheckSource, "fleetlock-check-source", false, "Refuse FleetLock requests that do not come from an address of their Node.")
	flags.StringVar(&o.CertDir, "fleetlock-cert-dir", "", "Folder with tls.crt and tls.key for serving FleetLock over HTTPS.")
}

func (o *FleetLockOptions) enabled() bool { return o.Address != "" && o.Address != "0" }

func (o *FleetLockOptions) check() error {
	switch {
	case !o.enabled() && (o.Requests || o.CheckSource || o.CertDir != ""):
		return errors.New("--fleetlock-requests, --fleetlock-check-source and --fleetlock-cert-dir have no effect without --fleetlock-bind-address")
	case o.enabled() && (o.Hold < 0 || o.Hold > maxHold):
		return fmt.Errorf("--fleetlock-hold %s must be between 0 and %s, because Zincati gives up after 30 minutes", o.Hold, maxHold)
	}
	return nil
}

// maxHold leaves a minute for the answer to Zincati, whose requests end after 30 minutes.
const maxHold = 29 * time.Minute

// SetupFleetLock makes a manager serve FleetLock if the flags enable it.
func SetupFleetLock(ctx context.Context, mgr ctrl.Manager, o Options) error {
	f := o.FleetLock
	if !f.enabled() {
		return nil
	}
	s := &fleetlockserver.Server{
		Cache: mgr.GetCache(), Live: mgr.GetAPIReader(), Clock: clock.RealClock{}, Hold: f.Hold,
		Recorder:  lifecycle.Recorder{EventRecorder: mgr.GetEventRecorder(v1alpha1.FieldOwnerManager)},
		Namespace: o.Namespace, CheckSource: f.CheckSource,
	}
	if f.Requests {
		s.Requests = mgr.GetClient()
	}
	if f.CertDir != "" {
		certificate, err := certwatcher.New(filepath.Join(f.CertDir, "tls.crt"), filepath.Join(f.CertDir, "tls.key"))
		if err != nil {
			return fmt.Errorf("reading the certificate in --fleetlock-cert-dir: %w", err)
		}
		if err := mgr.Add(certificate); err != nil {
			return fmt.Errorf("watching the certificate in --fleetlock-cert-dir: %w", err)
		}
		s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.GetCertificate}
	}
	var err error
	if s.Listener, err = new(net.ListenConfig).Listen(ctx, "tcp", f.Address); err != nil {
		return fmt.Errorf("listening at --fleetlock-bind-address: %w", err)
	}
	if err := errors.Join(fleetlockserver.Index(ctx, mgr.GetFieldIndexer()), mgr.Add(s)); err != nil {
		return errors.Join(err, s.Listener.Close())
	}
	return nil
}

// withIdentity keeps the fields of a Node that identify its FleetLock client, in addition to those
// for decisions.
func withIdentity(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	trimmed := snapshot.Trim(node)
	info := &trimmed.Status.NodeInfo
	info.MachineID, info.SystemUUID = node.Status.NodeInfo.MachineID, node.Status.NodeInfo.SystemUUID
	trimmed.Status.Addresses = node.Status.Addresses
	return trimmed, nil
}
