package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/internal/cli"
	"github.com/freshbind/freshbind/routes/gatewaytest"
)

// errGatewayFailed is what makes the exit code 1 when a test failed.
var errGatewayFailed = errors.New("tests failed")

// ConformanceOptions say which gateway is tested, and from where.
type ConformanceOptions struct {
	streams genericiooptions.IOStreams

	RefreshURL, ProbeURL string
	ProbeHeaders         []string
	CanaryAddress        string
	Timeout, FenceWait   time.Duration
	Output               cli.Output
	// Peer has the credentials of pushes.
	Peer rest.Config

	header http.Header
}

func newConformanceCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &ConformanceOptions{streams: streams, Timeout: 10 * time.Second}
	cmd := &cobra.Command{
		Use:   "conformance --probe-url URL --canary-address IP[:PORT]",
		Short: "Test whether a live gateway brings routes back, or believes anybody",
		Long: "Conformance invents sandboxes at the address where it listens itself, tells one replica of a gateway about them as a\n" +
			"peer would, and sees whether requests arrive. It touches no real sandbox, and removes what it invented.\n\n" +
			"Run it in the cluster, at an address that the gateway can reach. {id}, {namespace}, {name} and {port} in the\n" +
			"probe's URL and headers stand for a sandbox's.\n\n" +
			"Exit codes: 0 no test failed, 1 a test failed or the gateway does not answer, 2 wrong usage.",
		Example: "  freshbind routes conformance --canary-address $POD_IP \\\n" +
			"    --refresh-url http://10.0.0.7:7789/refresh --probe-url http://10.0.0.7:7788/kruise/{id}/{port}/\n" +
			"  freshbind routes conformance --canary-address $POD_IP --probe-url http://10.0.0.8:8080/ \\\n" +
			"    --probe-header 'X-Sandbox-ID: {name}' --probe-header 'X-Sandbox-Namespace: {namespace}' --probe-header 'X-Sandbox-Port: {port}'",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Complete(); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	o.AddFlags(cmd.Flags())
	o.Output.AddFlags(cmd)
	return cmd
}

// AddFlags adds the flags to fs.
func (o *ConformanceOptions) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.RefreshURL, "refresh-url", "", "Where peers push to one replica of the gateway. Without it, only clients' requests are tested.")
	fs.StringVar(&o.ProbeURL, "probe-url", "", "URL of a sandbox through the same replica.")
	fs.StringArrayVar(&o.ProbeHeaders, "probe-header", nil, "Header of a request for a sandbox, as \"Name: value\". Can be given several times.")
	fs.StringVar(&o.CanaryAddress, "canary-address", "", "IP address of this process that the gateway can reach, with or without a port.")
	fs.DurationVar(&o.Timeout, "timeout", o.Timeout, "How long one request may take.")
	fs.DurationVar(&o.FenceWait, "fence-wait", 0, "How long to wait after a delete before pushing something late, such as 12m; 0 skips that test.")
	fs.StringVar(&o.Peer.BearerTokenFile, "token-file", "", "File with the token that pushes carry.")
	fs.StringVar(&o.Peer.CAFile, "certificate-authority", "", "File with the CA of the gateway's certificate.")
	fs.StringVar(&o.Peer.CertFile, "client-certificate", "", "File with the client certificate of pushes.")
	fs.StringVar(&o.Peer.KeyFile, "client-key", "", "File with that certificate's key.")
}

// Complete fills in what follows from what was said.
func (o *ConformanceOptions) Complete() error {
	if o.CanaryAddress != "" && net.ParseIP(o.CanaryAddress) != nil {
		o.CanaryAddress = net.JoinHostPort(o.CanaryAddress, "0")
	}
	o.header = http.Header{}
	for _, h := range o.ProbeHeaders {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return usage("--probe-header %q: write it as \"Name: value\"", h)
		}
		o.header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return nil
}

// Validate says what is wrong with the options, by flag.
func (o *ConformanceOptions) Validate() error {
	host, _, err := net.SplitHostPort(o.CanaryAddress)
	ip := net.ParseIP(host)
	switch {
	case o.ProbeURL == "":
		return usage("--probe-url is required: say how a sandbox is reached through the gateway")
	case !httpURL(o.ProbeURL):
		return usage("--probe-url %q is no http or https URL", o.ProbeURL)
	case o.RefreshURL != "" && !httpURL(o.RefreshURL):
		return usage("--refresh-url %q is no http or https URL", o.RefreshURL)
	case err != nil || ip == nil || ip.IsUnspecified():
		return usage("--canary-address %q: give an IP address of this process that the gateway can reach", o.CanaryAddress)
	case o.Timeout <= 0:
		return usage("--timeout %s is not positive", o.Timeout)
	case o.FenceWait < 0:
		return usage("--fence-wait %s is negative", o.FenceWait)
	case (o.Peer.CertFile == "") != (o.Peer.KeyFile == ""):
		return usage("--client-certificate and --client-key are given together or not at all")
	}
	if err := o.Output.Validate(); err != nil {
		return usage("%w", err)
	}
	return nil
}

func httpURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

func (o *ConformanceOptions) run(ctx context.Context) error {
	gateway, err := o.gateway()
	if err != nil {
		return err
	}
	canary, err := gatewaytest.NewCanary(o.CanaryAddress)
	if err != nil {
		return fmt.Errorf("--canary-address: %w", err)
	}
	defer func() { _ = canary.Close() }()
	outcomes, err := gatewaytest.Run(ctx, gatewaytest.Options{Gateway: gateway, Canary: canary, FenceWait: o.FenceWait})
	if err != nil {
		return err
	}
	if err := printOutcomes(o.streams.Out, &o.Output, outcomes); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	failed := 0
	for _, outcome := range outcomes {
		if outcome.Result == gatewaytest.Failed {
			failed++
		}
	}
	if failed > 0 {
		return &ExitError{Code: exitFailed, Err: fmt.Errorf("%d of %d %w", failed, len(outcomes), errGatewayFailed)}
	}
	return nil
}

func (o *ConformanceOptions) gateway() (gatewaytest.Gateway, error) {
	peer, err := rest.HTTPClientFor(&o.Peer)
	if err != nil {
		return gatewaytest.Gateway{}, fmt.Errorf("read the credentials of pushes: %w", err)
	}
	shared, err := rest.HTTPClientFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: o.Peer.CAFile}})
	if err != nil {
		return gatewaytest.Gateway{}, fmt.Errorf("--certificate-authority: %w", err)
	}
	anyone := *shared
	// Where a gateway sends a client on is not where it sends a request.
	anyone.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return gatewaytest.Gateway{
		RefreshURL: o.RefreshURL, ProbeURL: o.ProbeURL, ProbeHeader: o.header, Peer: peer, Anyone: &anyone, Timeout: o.Timeout,
	}, nil
}

func printOutcomes(out io.Writer, output *cli.Output, outcomes []gatewaytest.Outcome) error {
	if output.Machine() {
		return output.PrintObject(out, "ConformanceReport", map[string]any{"tests": outcomes})
	}
	w := printers.GetNewTabWriter(out)
	_, _ = fmt.Fprintln(w, "TEST\tRESULT\tFOUND")
	for _, o := range outcomes {
		found := o.Found
		if o.Result == gatewaytest.Failed {
			found += ". " + o.About
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", o.Test, o.Result, found)
	}
	return w.Flush()
}
