// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"os"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfig writes a kubeconfig with everything embedded, so that the file alone is enough.
func (l Lab) writeKubeconfig(path, server string, user *api.AuthInfo) error {
	authority, err := os.ReadFile(l.path("pki", "ca.crt"))
	if err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}
	config := api.NewConfig()
	config.Clusters["lab"] = &api.Cluster{Server: server, CertificateAuthorityData: authority}
	config.AuthInfos["lab"] = user
	config.Contexts["lab"] = &api.Context{Cluster: "lab", AuthInfo: "lab"}
	config.CurrentContext = "lab"
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode a kubeconfig: %w", err)
	}
	if err := writeFile(path, data); err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}
	return nil
}

// certUser is a user of a kubeconfig who shows a certificate of pki/.
func (l Lab) certUser(name string) (*api.AuthInfo, error) {
	cert, err := os.ReadFile(l.path("pki", name+".crt"))
	if err != nil {
		return nil, fmt.Errorf("write a kubeconfig: %w", err)
	}
	key, err := os.ReadFile(l.path("pki", name+".key"))
	if err != nil {
		return nil, fmt.Errorf("write a kubeconfig: %w", err)
	}
	return &api.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}, nil
}

// adminConfig is a connection as cluster admin, without a speed limit of its own.
func (l Lab) adminConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", Show(l.Kubeconfig()), err)
	}
	config.QPS = -1
	config.UserAgent = "frond-lab"
	return config, nil
}

func (l Lab) adminClient() (*kubernetes.Clientset, error) {
	config, err := l.adminConfig()
	if err != nil {
		return nil, err
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return client, nil
}
