package tracing

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace/noop"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/internal/liveread"
)

// traces is a collector of OpenTelemetry's.
type traces struct {
	collector.UnimplementedTraceServiceServer

	mu    sync.Mutex
	spans []*tracepb.Span
	// services are those that spans say they come from.
	services []string
}

func (c *traces) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range r.GetResourceSpans() {
		for _, a := range of.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				c.services = append(c.services, a.GetValue().GetStringValue())
			}
		}
		for _, scope := range of.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// startCollector returns a collector, and its URL.
func startCollector(t *testing.T) (*traces, string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, server := &traces{}, grpc.NewServer()
	collector.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return c, "http://" + listener.Addr().String()
}

// restore has nothing traced but what a test says, and nothing after it.
func restore(t *testing.T) {
	t.Helper()
	// Whoever runs tests may have traces of their own.
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
	t.Cleanup(func() {
		otel.SetTracerProvider(noop.NewTracerProvider())
		otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator())
	})
}

const (
	theirTrace  = "0af7651916cd43dd8448eb211c80319c"
	theirCaller = "b7ad6b7169203331"
)

// A call that the API server traces shows up below its span, with what was read for it
// below the call, and the API server can go on below that.
func TestFromWebhookToLiveReads(t *testing.T) {
	restore(t)
	c, url := startCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	end, err := Start(t.Context(), "freshbind", "v1")
	if err != nil || end == nil {
		t.Fatalf("end is there: %t, %v", end != nil, err)
	}
	var asked []string
	apiServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Traceparent"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"apiVersion":"a/v1","kind":"Template","metadata":{"name":"python","namespace":"ns"}}`)
	}))
	defer apiServer.Close()
	cfg := &rest.Config{Host: apiServer.URL}
	Requests(cfg)
	getter, err := liveread.NewDynamicGetter(cfg)
	if err != nil {
		t.Fatal(err)
	}
	reader := liveread.NewReader(getter, nil)
	ref := liveread.Ref{GVR: schema.GroupVersionResource{Group: "a", Version: "v1", Resource: "templates"}, Namespace: "ns", Name: "python"}
	handler := Handler("/bind", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := reader.Get(r.Context(), ref); err != nil {
			t.Error(err)
		}
	}))
	for _, sampled := range []string{"-01", "-00"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/bind", nil)
		r.Header.Set("Traceparent", "00-"+theirTrace+"-"+theirCaller+sampled)
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	// Nobody's request: a controller's.
	if _, err := reader.Get(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	end()

	c.mu.Lock()
	defer c.mu.Unlock()
	byID := map[string]string{theirCaller: "their caller"}
	for _, s := range c.spans {
		byID[fmt.Sprintf("%x", s.GetSpanId())] = s.GetName()
	}
	var got []string
	for _, s := range c.spans {
		if id := fmt.Sprintf("%x", s.GetTraceId()); id != theirTrace {
			t.Errorf("span %s is of trace %s", s.GetName(), id)
		}
		got = append(got, s.GetName()+" below "+byID[fmt.Sprintf("%x", s.GetParentSpanId())])
	}
	slices.Sort(got)
	want := []string{"/bind below their caller", "API server GET below live read templates", "live read templates below /bind"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans (-want,+got):\n%s", diff)
	}
	if slices.ContainsFunc(c.services, func(name string) bool { return name != "freshbind" }) || len(c.services) == 0 {
		t.Errorf("spans come from %q", c.services)
	}
	if len(asked) != 3 || !strings.HasPrefix(asked[0], "00-"+theirTrace) || !strings.HasSuffix(asked[0], "-01") || asked[2] != "" {
		t.Errorf("the API server was told of %q", asked)
	}
}

// A read that fails says why.
func TestReadsThatFail(t *testing.T) {
	restore(t)
	c, url := startCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url)
	t.Setenv("OTEL_SERVICE_NAME", "guard")
	end, err := Start(t.Context(), "freshbind", "v1")
	if err != nil || end == nil {
		t.Fatalf("end is there: %t, %v", end != nil, err)
	}
	reader := liveread.NewReader(failing{}, nil)
	handler := Handler("/bind", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = reader.Get(r.Context(), liveread.Ref{GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespace: "ns", Name: "p"})
	}))
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/bind", nil))
	end()
	c.mu.Lock()
	defer c.mu.Unlock()
	failed := slices.IndexFunc(c.spans, func(s *tracepb.Span) bool { return s.GetName() == "live read pods" })
	if failed < 0 || c.spans[failed].GetStatus().GetCode() != tracepb.Status_STATUS_CODE_ERROR || !strings.Contains(c.spans[failed].GetStatus().GetMessage(), "etcd is away") {
		t.Errorf("spans %v, want one of the read, with its error", c.spans)
	}
	if !slices.Equal(c.services, []string{"guard"}) {
		t.Errorf("spans come from %q, want what OTEL_SERVICE_NAME says", c.services)
	}
}

type failing struct{}

func (failing) Get(context.Context, liveread.Ref) (*unstructured.Unstructured, error) {
	return nil, fmt.Errorf("etcd is away")
}

// Nothing is traced unless somebody says where to, and what cannot be done is said.
func TestWhenNothingIsTraced(t *testing.T) {
	restore(t)
	for name, tc := range map[string]struct {
		env  map[string]string
		want string
	}{
		"by default":         {},
		"said not to":        {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}},
		"disabled":           {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "TRUE"}},
		"another protocol":   {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, want: "OTEL_EXPORTER_OTLP_PROTOCOL"},
		"another for traces": {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"}, want: "http/json"},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range tc.env {
				t.Setenv(k, v)
			}
			end, err := Start(t.Context(), "freshbind", "v1")
			if end != nil || (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("traced: %t, %v; want %q", end != nil, err, tc.want)
			}
			if _, set := otel.GetTextMapPropagator().(propagation.TraceContext); set {
				t.Error("requests would carry traces")
			}
		})
	}
}

// A collector that is away costs nothing but its spans.
func TestACollectorThatIsAway(t *testing.T) {
	restore(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "100") // Milliseconds.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	end, err := Start(ctx, "freshbind", "v1")
	if err != nil {
		t.Fatal(err)
	}
	answered := false
	Handler("/bind", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { answered = true })).
		ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/bind", nil))
	end()
	if !answered {
		t.Error("the call was not answered")
	}
}
