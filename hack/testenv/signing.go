package testenv

import (
	"crypto/ecdsa"
	"fmt"
	"path/filepath"

	"k8s.io/client-go/util/keyutil"
)

// SigningKey is the key that the API server signs tokens of ServiceAccounts with, for tests of tokens that it would not
// make.
func (e *Environment) SigningKey() (*ecdsa.PrivateKey, error) {
	path := filepath.Join(e.env.ControlPlane.GetAPIServer().CertDir, "sa-signer.key")
	key, err := keyutil.PrivateKeyFromFile(path)
	if err != nil {
		return nil, err // it names the file
	}
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s is a %T, want a key of ECDSA", path, key)
	}
	return private, nil
}
