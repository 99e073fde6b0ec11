// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCertificatesAreWhatEachProgramNeeds(t *testing.T) {
	l := Lab{Dir: t.TempDir()}
	if err := l.makeCertificates(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		authority, name, user string
		usage                 x509.ExtKeyUsage
	}{
		{"etcd", "etcd/server", "etcd", x509.ExtKeyUsageServerAuth},
		{"etcd", "etcd/apiserver", "kube-apiserver-etcd-client", x509.ExtKeyUsageClientAuth},
		{"front-proxy", "front-proxy/client", "front-proxy-client", x509.ExtKeyUsageClientAuth},
		{".", "apiserver", "kube-apiserver", x509.ExtKeyUsageServerAuth},
		{".", "scheduler-serving", "frond-scheduler", x509.ExtKeyUsageServerAuth},
		{".", "controller-manager-serving", "kube-controller-manager", x509.ExtKeyUsageServerAuth},
		{".", "admin", "lab-admin", x509.ExtKeyUsageClientAuth},
		{".", "controller-manager", "system:kube-controller-manager", x509.ExtKeyUsageClientAuth},
		{".", "kwok", "frond-lab-kwok", x509.ExtKeyUsageClientAuth},
	} {
		t.Run(want.name, func(t *testing.T) {
			cert := readCert(t, l.path("pki", want.name+".crt"))
			if _, err := tls.LoadX509KeyPair(l.path("pki", want.name+".crt"), l.path("pki", want.name+".key")); err != nil {
				t.Errorf("certificate and key do not belong together: %v", err)
			}
			if cert.Subject.CommonName != want.user {
				t.Errorf("is for %q, want %q", cert.Subject.CommonName, want.user)
			}
			options := x509.VerifyOptions{Roots: pool(t, l.path("pki", want.authority, "ca.crt")), KeyUsages: []x509.ExtKeyUsage{want.usage}}
			if want.usage == x509.ExtKeyUsageServerAuth {
				options.DNSName = "127.0.0.1"
			}
			if _, err := cert.Verify(options); err != nil {
				t.Errorf("does not verify: %v", err)
			}
		})
	}
}

func TestNoAuthorityVouchesForAnother(t *testing.T) {
	l := Lab{Dir: t.TempDir()}
	if err := l.makeCertificates(); err != nil {
		t.Fatal(err)
	}
	kwok := readCert(t, l.path("pki", "kwok.crt"))
	for _, other := range []string{"etcd", "front-proxy"} {
		options := x509.VerifyOptions{Roots: pool(t, l.path("pki", other, "ca.crt")), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
		if _, err := kwok.Verify(options); err == nil {
			t.Errorf("a client of the API server would be let in by %s", other)
		}
	}
	for _, name := range []string{"apiserver", "scheduler-serving"} {
		options := x509.VerifyOptions{Roots: pool(t, l.path("pki", "ca.crt")), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		if _, err := readCert(t, l.path("pki", name+".crt")).Verify(options); err == nil {
			t.Errorf("%s's serving certificate works as a client's", name)
		}
	}
}

func TestKeysAreForTheirOwnerOnly(t *testing.T) {
	l := Lab{Dir: t.TempDir()}
	if err := l.makeCertificates(); err != nil {
		t.Fatal(err)
	}
	keys := 0
	err := filepath.WalkDir(l.path("pki"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", path, info.Mode().Perm())
		}
		if strings.HasSuffix(path, ".key") {
			keys++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := 11; keys != want { // nine certificates, the cluster's authority, service accounts; not the other authorities'
		t.Errorf("%d keys were written, want %d", keys, want)
	}
}

func readCert(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func pool(t *testing.T, path string) *x509.CertPool {
	t.Helper()
	certs := x509.NewCertPool()
	certs.AddCert(readCert(t, path))
	return certs
}
