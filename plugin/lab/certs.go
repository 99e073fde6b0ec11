// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// A lab has three authorities, as kubeadm's clusters have: for the API, for etcd and for the front proxy. With one alone
// every client certificate of the cluster would open etcd, or could claim to be anybody, and with it everything that RBAC denies.

const certLife = 365 * 24 * time.Hour

// authority signs certificates and writes them as NAME.crt and NAME.key into its folder.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// subject is whom a certificate is for. Servers get the loopback address and hosts; clients a user and its groups.
type subject struct {
	user   string
	groups []string
	server bool
	client bool
	hosts  []string
}

// newAuthority makes ca.crt in dir; the key stays in memory unless keep is set.
func newAuthority(dir, name string, keep bool) (*authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder for certificates: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of %s: %w", name, err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
	}
	a := &authority{dir: dir, cert: template, key: key}
	if a.cert, err = a.sign("ca", template, key); err != nil {
		return nil, err
	}
	if keep {
		if err := writeKey(filepath.Join(dir, "ca.key"), key); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// issue makes NAME.crt and NAME.key for a subject.
func (a *authority) issue(name string, who subject) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make the key of %s: %w", name, err)
	}
	template := &x509.Certificate{
		Subject:  pkix.Name{CommonName: who.user, Organization: who.groups},
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if who.server {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		template.DNSNames = append([]string{"localhost"}, who.hosts...)
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	if who.client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	if _, err := a.sign(name, template, key); err != nil {
		return err
	}
	return writeKey(filepath.Join(a.dir, name+".key"), key)
}

func (a *authority) sign(name string, template *x509.Certificate, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("choose the serial number of %s: %w", name, err)
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-5 * time.Minute)
	template.NotAfter = time.Now().Add(certLife)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of %s: %w", name, err)
	}
	path := filepath.Join(a.dir, name+".crt")
	if err := writeFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})); err != nil {
		return nil, fmt.Errorf("write a certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	if err := writeFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})); err != nil {
		return fmt.Errorf("write a key: %w", err)
	}
	return nil
}

// makeCertificates fills pki/ with everything the programs need.
func (l Lab) makeCertificates() error {
	etcd, err := newAuthority(l.path("pki", "etcd"), "frond-lab-etcd", false)
	if err != nil {
		return err
	}
	proxy, err := newAuthority(l.path("pki", "front-proxy"), "frond-lab-front-proxy", false)
	if err != nil {
		return err
	}
	// The controller-manager signs certificate requests, as in a real cluster: the key of this authority is kept.
	cluster, err := newAuthority(l.path("pki"), "frond-lab", true)
	if err != nil {
		return err
	}
	for _, leaf := range []struct {
		authority *authority
		name      string
		subject   subject
	}{
		{etcd, "server", subject{user: "etcd", server: true, client: true}}, // etcd's own gateway calls itself as a client
		{etcd, "apiserver", subject{user: "kube-apiserver-etcd-client", client: true}},
		{proxy, "client", subject{user: frontProxyUser, client: true}},
		{cluster, "apiserver", subject{user: "kube-apiserver", server: true,
			hosts: []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}}},
		{cluster, "controller-manager-serving", subject{user: "kube-controller-manager", server: true}},
		{cluster, "scheduler-serving", subject{user: "frond-scheduler", server: true}},
		{cluster, "admin", subject{user: "lab-admin", groups: []string{"system:masters"}, client: true}},
		{cluster, "controller-manager", subject{user: "system:kube-controller-manager", client: true}},
		{cluster, "kwok", subject{user: kwokUser, client: true}},
	} {
		if err := leaf.authority.issue(leaf.name, leaf.subject); err != nil {
			return err
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make the key of service accounts: %w", err)
	}
	if err := writeKey(l.path("pki", "service-accounts.key"), key); err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return fmt.Errorf("encode the key of service accounts: %w", err)
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	if err := writeFile(l.path("pki", "service-accounts.pub"), block); err != nil {
		return fmt.Errorf("write a key: %w", err)
	}
	return nil
}
