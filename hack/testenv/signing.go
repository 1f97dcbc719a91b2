package testenv

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// SigningKey is the key that the API server signs tokens of ServiceAccounts with, for tests of tokens that it would not
// make.
func (e *Environment) SigningKey() (*ecdsa.PrivateKey, error) {
	path := filepath.Join(e.env.ControlPlane.GetAPIServer().CertDir, "sa-signer.key")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err // it names the file
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New(path + " is no PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New(path + " is no key of ECDSA")
	}
	return private, nil
}
