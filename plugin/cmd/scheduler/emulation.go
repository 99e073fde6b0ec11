// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/version"
	apiversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"sigs.k8s.io/yaml"
)

const flagEmulatedVersion = "emulated-version"

// How long the API server may take to tell its version, and how often it is asked. An API server that comes up later than
// that finds a scheduler that emulates nothing.
const (
	askWithin = 10 * time.Second
	askEvery  = time.Second
)

// emulation makes the scheduler behave like one of the API server's own version: left as it is, it would wait for ever to
// see kinds that an older API server does not serve. Upstream can do so, but waits for a user to give --emulated-version.
type emulation struct {
	within, every time.Duration
	line          string // what was decided, for the log
	details       []any
}

// choose sets --emulated-version, unless the user has. Upstream decides about feature gates by it, so it runs before.
func (e *emulation) choose(c *cobra.Command, _ []string) error {
	flags := c.Flags()
	if flags.Changed(flagEmulatedVersion) || flags.Changed("version") {
		return nil
	}
	config, err := connection(flags)
	if err != nil {
		return nil // upstream reads the same files in a moment, and stops with its own words
	}
	own := compatibility.DefaultBuildEffectiveVersion()
	info, err := e.ask(c.Context(), config)
	if err != nil {
		e.line = "The API server did not tell its version, going on without emulation; if it is older than this scheduler, restart this or give --" + flagEmulatedVersion
		e.details = []any{"scheduler", own.BinaryVersion().String(), "asked", config.Host, "err", err.Error()}
		return nil
	}
	e.details = []any{"apiServer", info.GitVersion, "scheduler", own.BinaryVersion().String()}
	served, err := emulatedBy(info)
	if err != nil {
		e.line = "The API server told a version that is none, going on without emulation"
		e.details = append(e.details, "err", err.Error())
		return nil
	}
	switch minor := own.EmulationVersion(); {
	case served.GreaterThan(minor):
		e.line = "The API server is newer than this scheduler, going on without emulation"
		return nil
	case served.EqualTo(minor):
		e.line = "The API server has this scheduler's version"
		return nil
	}
	own.SetEmulationVersion(served)
	if wrong := own.Validate(); len(wrong) > 0 {
		return fmt.Errorf("the API server %s is too old for this scheduler: %w; --%s given by hand overrides this", info.GitVersion, wrong[0], flagEmulatedVersion)
	}
	e.line = "The API server is older than this scheduler, emulating its version"
	e.details = append(e.details, "emulated", served.String())
	return flags.Set(flagEmulatedVersion, served.String())
}

// tell logs what was decided. As an option of upstream's command it is called when logging has been set up, and before
// anything waits for the API server.
func (e *emulation) tell(runtime.Registry) error {
	if e.line != "" {
		klog.Background().Info(e.line, e.details...)
	}
	return nil
}

// connection is the one that upstream will make: by the configuration if there is one, which counts more than --kubeconfig.
func connection(flags *pflag.FlagSet) (*rest.Config, error) {
	text := func(flag string) string { return flags.Lookup(flag).Value.String() }
	kubeconfig, master := text("kubeconfig"), text("master")
	if path := text("config"); path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the configuration: %w", err)
		}
		var config struct {
			ClientConnection struct {
				Kubeconfig string `json:"kubeconfig"`
			} `json:"clientConnection"`
		}
		if err := yaml.Unmarshal(data, &config); err != nil {
			return nil, fmt.Errorf("read the configuration: %w", err)
		}
		kubeconfig = config.ClientConnection.Kubeconfig
	}
	if kubeconfig == "" && master == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags(master, kubeconfig)
}

// ask reads /version.
func (e *emulation) ask(ctx context.Context, config *rest.Config) (*apiversion.Info, error) {
	client, err := ownClient(config)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, e.within)
	defer cancel()
	for {
		info, err := get(ctx, client, base.JoinPath("version").String())
		if err == nil {
			return info, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(e.every):
		}
	}
}

// ownClient shares nothing with those that client-go keeps for all of the process and makes by feature gates, which are not
// fixed yet. For a certificate authority one gate is looked at even so, and upstream warns that emulation changes it.
func ownClient(config *rest.Config) (*http.Client, error) {
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	secrets, err := config.TransportConfig()
	if err != nil {
		return nil, err
	}
	own := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: config.Dial, DisableKeepAlives: true}
	if config.Proxy != nil {
		own.Proxy = config.Proxy
	}
	if own.TLSClientConfig, err = transport.TLSConfigFor(secrets); err != nil {
		return nil, err
	}
	trip, err := transport.HTTPWrappersForConfig(secrets, own)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: trip}, nil
}

const versionBytesMost = 1 << 16

func get(ctx context.Context, client *http.Client, url string) (*apiversion.Info, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", url, response.Status)
	}
	info := &apiversion.Info{}
	if err := json.NewDecoder(io.LimitReader(response.Body, versionBytesMost)).Decode(info); err != nil {
		return nil, fmt.Errorf("GET %s: %w", url, err)
	}
	return info, nil
}

// emulatedBy is the version whose kinds the API server serves: an API server may itself emulate an older one. Vendors
// write minor versions like 35+.
func emulatedBy(info *apiversion.Info) (*version.Version, error) {
	major, minor := info.Major, info.Minor
	if info.EmulationMajor != "" && info.EmulationMinor != "" {
		major, minor = info.EmulationMajor, info.EmulationMinor
	}
	return version.ParseMajorMinor(major + "." + strings.TrimRight(minor, "+"))
}
