// Package otherprocess runs a controller manager's binary in the place of a controller of the test's process.
//
// `cargo xtask upstream-tests` copies this file into a copy of the module k8s.io/kubernetes and makes the test API server
// call Remember and the Run methods of controllers call Run.
package otherprocess

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	"k8s.io/metrics/pkg/client/external_metrics"
)

const (
	// program names the binary. Where it is not set, upstream's controllers run in the test's process.
	program = "OTHERPROCESS_PROGRAM"
	// logFile names the file to which the binary's output is appended.
	logFile = "OTHERPROCESS_LOG"
	// stopPeriod bounds how long a process may take to stop before it is killed.
	stopPeriod = 5 * time.Second
)

var server atomic.Pointer[rest.Config]

// Remember makes Run connect to this API server. The latest call wins.
func Remember(config *rest.Config) {
	server.Store(rest.CopyConfig(config))
}

// externalMetrics is the prefix of the API that a test's fake client stands for.
const externalMetrics = "/apis/external.metrics.k8s.io/v1beta1/namespaces/"

var metrics atomic.Pointer[external_metrics.ExternalMetricsClient]

// ServeExternalMetrics makes the API server of the binary answer for external metrics what a fake client of the test's
// process does.
func ServeExternalMetrics(client external_metrics.ExternalMetricsClient) {
	metrics.Store(&client)
}

// Run runs the binary with one controller until the context ends. It returns false, at once, where no binary is set.
func Run(ctx context.Context, controller string) bool {
	return RunUntil(ctx.Done(), controller)
}

// RunUntil is Run for a stop channel.
func RunUntil(stop <-chan struct{}, controller string) bool {
	binary := os.Getenv(program)
	if binary == "" {
		return false
	}
	if err := run(stop, binary, controller); err != nil {
		// The test fails by what the controller leaves undone; this line says why.
		fmt.Fprintf(os.Stderr, "otherprocess: %s: %v\n", controller, err)
		<-stop
	}
	return true
}

func run(stop <-chan struct{}, binary, controller string) error {
	proxy, err := newProxy(server.Load())
	if err != nil {
		return err
	}
	defer proxy.Close()
	defer proxy.CloseClientConnections()

	folder, err := os.MkdirTemp("", "otherprocess")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	kubeconfig, err := writeKubeconfig(folder, proxy.URL)
	if err != nil {
		return err
	}
	if controller == "persistentvolume-binder-controller" {
		endStandIn, err := startStandIn(server.Load())
		if err != nil {
			return err
		}
		defer endStandIn()
	}

	arguments := []string{
		"--kubeconfig=" + kubeconfig,
		"--controllers=" + controller,
		"--leader-elect=false",
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
		"--controller-start-interval=0s",
	}
	arguments = append(arguments, strings.Fields(os.Getenv("OTHERPROCESS_ARGUMENTS"))...)
	if gates := changedGates(); gates != "" {
		arguments = append(arguments, "--feature-gates="+gates)
	}
	if controller == "certificatesigningrequest-signing-controller" {
		if flags := signer.Load(); flags != nil {
			arguments = append(arguments, *flags...)
		}
	}
	process, err := start(binary, arguments)
	if err != nil {
		return err
	}
	select {
	case err := <-process.ended:
		return fmt.Errorf("the process ended before the test stopped it: %w", err)
	case <-stop:
	}
	process.end()
	return nil
}

// process is a running binary.
type process struct {
	command *exec.Cmd
	output  *os.File
	ended   chan error
}

func start(binary string, arguments []string) (*process, error) {
	output, err := os.OpenFile(os.Getenv(logFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	command := exec.Command(binary, arguments...)
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		_ = output.Close()
		return nil, err
	}
	ended := make(chan error, 1)
	go func() {
		ended <- command.Wait()
		_ = output.Close()
	}()
	return &process{command: command, output: output, ended: ended}, nil
}

// end stops the process, and kills it if it does not stop in time.
func (p *process) end() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(stopPeriod):
		_ = p.command.Process.Kill()
		<-p.ended
	}
}

var signer atomic.Pointer[[]string]

// SetSigner remembers the files and the duration that a test gives to the signer of client certificates.
func SetSigner(certFile, keyFile string, duration time.Duration) {
	signer.Store(&[]string{
		"--cluster-signing-kube-apiserver-client-cert-file=" + certFile,
		"--cluster-signing-kube-apiserver-client-key-file=" + keyFile,
		"--cluster-signing-duration=" + duration.String(),
	})
}

var metricsURL atomic.Pointer[string]

// Start runs the binary with the flags of a test that starts a whole manager. It returns a nil function if no binary is
// set.
func Start(ctx context.Context, flags []string) (func(), error) {
	binary := os.Getenv(program)
	if binary == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	_ = listener.Close()
	arguments := append([]string{
		"--secure-port=" + port, "--bind-address=127.0.0.1", "--authorization-always-allow-paths=/healthz,/metrics",
	}, flags...)
	process, err := start(binary, arguments)
	if err != nil {
		return nil, err
	}
	client := insecureClient()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		response, err := client.Get("https://" + address + "/healthz")
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			process.end()
			return nil, fmt.Errorf("the process is not healthy on %s", address)
		}
	}
	url := "https://" + address + "/metrics"
	metricsURL.Store(&url)
	return process.end, nil
}

// Metrics reads the metrics of the latest process of Start. It returns nil if there is none.
func Metrics(ctx context.Context) ([]byte, error) {
	url := metricsURL.Load()
	if url == nil {
		return nil, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, *url, nil)
	if err != nil {
		return nil, err
	}
	response, err := insecureClient().Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

func insecureClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
}

// newProxy serves the API server over plain HTTP and adds the test's credentials, because a loopback configuration holds
// a token and a certificate that exist in the test's process only.
func newProxy(config *rest.Config) (*httptest.Server, error) {
	if config == nil {
		return nil, fmt.Errorf("no test API server has started")
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst, config.Timeout = -1, 0, 0
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(&url.URL{Scheme: base.Scheme, Host: base.Host})
			request.Out.Host = base.Host
		},
		// A broken connection to the API server must look like one, not like an answer 502.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	return httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		path, isMetric := strings.CutPrefix(request.URL.Path, externalMetrics)
		client := metrics.Load()
		if !isMetric || client == nil {
			proxy.ServeHTTP(writer, request)
			return
		}
		namespace, name, _ := strings.Cut(path, "/")
		list, err := (*client).NamespacedMetrics(namespace).List(name, labels.Everything())
		if err != nil {
			http.Error(writer, err.Error(), http.StatusInternalServerError)
			return
		}
		list.APIVersion, list.Kind = "external.metrics.k8s.io/v1beta1", "ExternalMetricValueList"
		writer.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(writer).Encode(list)
	})), nil
}

func writeKubeconfig(folder, address string) (string, error) {
	type object = map[string]any
	content, err := json.Marshal(object{
		"apiVersion":      "v1",
		"kind":            "Config",
		"clusters":        []object{{"name": "test", "cluster": object{"server": address}}},
		"users":           []object{{"name": "test", "user": object{}}},
		"contexts":        []object{{"name": "test", "context": object{"cluster": "test", "user": "test"}}},
		"current-context": "test",
	})
	if err != nil {
		return "", err
	}
	file := filepath.Join(folder, "kubeconfig")
	return file, os.WriteFile(file, content, 0o600)
}

// changedGates lists the feature gates that the test has set to another value than their default.
func changedGates() string {
	var changed []string
	for name, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		if enabled := utilfeature.DefaultFeatureGate.Enabled(featuregate.Feature(name)); enabled != spec.Default {
			changed = append(changed, fmt.Sprintf("%s=%t", name, enabled))
		}
	}
	sort.Strings(changed)
	return strings.Join(changed, ",")
}
