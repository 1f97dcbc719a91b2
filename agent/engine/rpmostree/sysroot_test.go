package rpmostree

import (
	"errors"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
)

func sysrootProperties() map[string]any {
	return map[string]any{
		"Booted": dbus.ObjectPath("/org/projectatomic/rpmostree1/fedora_coreos"), "AutomaticUpdatePolicy": "none",
		"ActiveTransaction": []any{"", "", ""}, "Deployments": []properties{variants(map[string]any{"booted": true})},
	}
}

// wire converts properties as D-Bus does: a structure becomes a list of its values.
func wire(properties map[string]any) map[string]dbus.Variant {
	values := map[string]dbus.Variant{}
	for name, value := range properties {
		if list, ok := value.([]any); ok {
			values[name] = dbus.MakeVariantWithSignature(list, dbus.ParseSignatureMust("(sss)"))
			continue
		}
		values[name] = dbus.MakeVariant(value)
	}
	return values
}

func TestDecodeSysroot(t *testing.T) {
	properties := sysrootProperties()
	properties["ActiveTransaction"] = []any{"Upgrade", ":1.9", "/org/projectatomic/rpmostree1/fedora_coreos"}
	got, err := decodeSysroot(wire(properties))
	if err != nil {
		t.Fatal(err)
	}
	want := sysroot{
		booted: "/org/projectatomic/rpmostree1/fedora_coreos", policy: "none", transaction: "Upgrade",
		deployments: []deployment{{booted: true}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(sysroot{}, deployment{})); diff != "" {
		t.Errorf("sysroot (-want +got):\n%s", diff)
	}
}

func TestDecodeSysroot_RefusesMissingProperties(t *testing.T) {
	cases := map[string]struct {
		change func(map[string]any)
		want   error
	}{
		"no system":                       {func(p map[string]any) { delete(p, "Booted") }, errMalformed},
		"a system as text":                {func(p map[string]any) { p["Booted"] = "/a" }, errMalformed},
		"no policy":                       {func(p map[string]any) { delete(p, "AutomaticUpdatePolicy") }, errMalformed},
		"a policy as a number":            {func(p map[string]any) { p["AutomaticUpdatePolicy"] = int32(1) }, errMalformed},
		"no transaction":                  {func(p map[string]any) { delete(p, "ActiveTransaction") }, errMalformed},
		"a transaction of two texts":      {func(p map[string]any) { p["ActiveTransaction"] = []any{"", ""} }, errMalformed},
		"a transaction of numbers":        {func(p map[string]any) { p["ActiveTransaction"] = []any{1, 2, 3} }, errMalformed},
		"a transaction as text":           {func(p map[string]any) { p["ActiveTransaction"] = "Upgrade" }, errMalformed},
		"no deployments":                  {func(p map[string]any) { delete(p, "Deployments") }, errMalformed},
		"a host that ostree did not boot": {func(p map[string]any) { p["Booted"] = dbus.ObjectPath("/") }, errNotBooted},
		"a path that is not valid":        {func(p map[string]any) { p["Booted"] = dbus.ObjectPath("a b") }, errNotBooted},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			properties := sysrootProperties()
			tc.change(properties)
			if got, err := decodeSysroot(wire(properties)); !errors.Is(err, tc.want) {
				t.Errorf("decoded as %+v, %v; want error %v", got, err, tc.want)
			}
		})
	}
}

func TestSysroot_LeavesTheHostAlone(t *testing.T) {
	booted := deployment{version: "40.1", booted: true}
	locked := []deployment{{version: "40.2", staged: true, locked: true}, booted}
	cases := map[string]struct {
		sysroot sysroot
		want    Round
	}{
		"nothing prevents an upgrade":          {sysroot{policy: "none"}, Round{}},
		"a policy that only checks":            {sysroot{policy: "check"}, Round{}},
		"the older name of policy none":        {sysroot{policy: "off"}, Round{}},
		"a staged deployment may be replaced":  {sysroot{policy: "none", deployments: []deployment{{staged: true}, booted}}, Round{}},
		"the host stages":                      {sysroot{policy: "stage"}, Round{Outcome: OutcomeLeftToHost, Policy: "stage"}},
		"the host stages, under an older name": {sysroot{policy: "ex-stage"}, Round{Outcome: OutcomeLeftToHost, Policy: "ex-stage"}},
		"the host reboots too":                 {sysroot{policy: "apply"}, Round{Outcome: OutcomeLeftToHost, Policy: "apply"}},
		"a transaction":                        {sysroot{policy: "none", transaction: "PkgChange"}, Round{Outcome: OutcomeBusy}},
		"the policy comes before the transaction": {
			sysroot{policy: "apply", transaction: "Upgrade"}, Round{Outcome: OutcomeLeftToHost, Policy: "apply"},
		},
		"a locked deployment": {sysroot{policy: "none", deployments: locked}, Round{Outcome: OutcomeLocked}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, alone := tc.sysroot.leftAlone()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("round (-want +got):\n%s", diff)
			}
			if alone != (tc.want != Round{}) {
				t.Errorf("left alone: %v", alone)
			}
		})
	}
}

// FuzzDecodeSysroot builds the four properties from values of any type.
func FuzzDecodeSysroot(f *testing.F) {
	f.Add("/org/projectatomic/rpmostree1/os", "none", "", []byte{0, 1, 2, 3})
	f.Add("/", "stage", "Upgrade", []byte{0, 1, 2, 3})
	f.Add("a", "b", "c", []byte{3, 2, 1, 0})
	f.Add("a", "b", "c", []byte{4, 5, 6, 7})
	f.Fuzz(func(t *testing.T, path, policy, method string, shape []byte) {
		values := []dbus.Variant{
			dbus.MakeVariant(dbus.ObjectPath(path)), dbus.MakeVariant(policy),
			dbus.MakeVariantWithSignature([]any{method, "", ""}, dbus.ParseSignatureMust("(sss)")),
			dbus.MakeVariant([]properties{{}}),
			{},
			dbus.MakeVariant(int32(1)), dbus.MakeVariant([]string{policy}),
			dbus.MakeVariantWithSignature([]any{method, 1, ""}, dbus.ParseSignatureMust("(sis)")),
		}
		properties := map[string]dbus.Variant{}
		for i, name := range []string{"Booted", "AutomaticUpdatePolicy", "ActiveTransaction", "Deployments"} {
			if i < len(shape) {
				properties[name] = values[int(shape[i])%len(values)]
			}
		}
		got, err := decodeSysroot(properties)
		if err != nil {
			return
		}
		if !got.booted.IsValid() || got.booted == "/" {
			t.Errorf("booted %q", got.booted)
		}
		if _, alone := got.leftAlone(); !alone && got.transaction != "" {
			t.Errorf("%+v is not left alone", got)
		}
	})
}
