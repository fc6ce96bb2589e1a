package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/rest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// endTimeout bounds how long the last spans may take at the end.
const endTimeout = 5 * time.Second

// Start sends spans where the standard environment variables of OpenTelemetry say
// (OTEL_EXPORTER_OTLP_ENDPOINT and others). Without an endpoint nothing is traced, and
// end is nil; else it sends what is left.
func Start(ctx context.Context, service, version string) (end func(), err error) {
	if !wanted() {
		return nil, nil
	}
	if protocol := variable("PROTOCOL"); protocol != "" && protocol != "grpc" {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: %q is not spoken here, only grpc is", protocol)
	}
	log := logf.FromContext(ctx).WithName("tracing")
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Error(err, "Sending traces") }))
	// It connects when it has something to send, so that no collector has to be there.
	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("creating the exporter of traces: %w", err)
	}
	of, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", service), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, errors.Join(fmt.Errorf("reading OTEL_RESOURCE_ATTRIBUTES: %w", err), exporter.Shutdown(ctx))
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(of))
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	log.Info("Sending traces", "endpoint", variable("ENDPOINT"))
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			log.Error(err, "Sending the last traces")
		}
	}, nil
}

// wanted: somebody said where traces go, and nobody that they do not.
func wanted() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return variable("ENDPOINT") != ""
}

// variable is what is said of traces, else of all that is sent by OTLP.
func variable(name string) string {
	if v := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_" + name); v != "" {
		return v
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_" + name)
}

// Handler makes a span of each request, below the caller's.
func Handler(path string, next http.Handler) http.Handler {
	return otelhttp.NewHandler(next, path, otelhttp.WithSpanNameFormatter(func(path string, _ *http.Request) string { return path }))
}

// Requests makes a span of each request to the API server that is part of a trace,
// and lets the API server go on with it.
func Requests(cfg *rest.Config) {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return otelhttp.NewTransport(next,
			// A shared read knows the trace of who caused it, but not the span: that may have
			// ended.
			otelhttp.WithTracerProvider(otel.GetTracerProvider()),
			otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return "API server " + r.Method }),
			otelhttp.WithFilter(func(r *http.Request) bool { return trace.SpanContextFromContext(r.Context()).IsValid() }))
	})
}
