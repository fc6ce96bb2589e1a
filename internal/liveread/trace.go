package liveread

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// startSpan begins a span for one caller, if it is part of a trace: what controllers
// read for themselves makes none.
func startSpan(ctx context.Context, ref Ref) (context.Context, trace.Span) {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ctx, trace.SpanFromContext(context.Background())
	}
	return otel.Tracer("github.com/freshbind/freshbind/internal/liveread").Start(ctx, "live read "+ref.GVR.Resource, trace.WithAttributes(
		attribute.String("k8s.resource", ref.GVR.Resource), attribute.String("k8s.namespace.name", ref.Namespace), attribute.String("k8s.object.name", ref.Name)))
}

// shareSpan notes that the read is one that another caller has caused, whose trace
// has the request.
func shareSpan(ctx context.Context) {
	trace.SpanFromContext(ctx).SetAttributes(attribute.Bool("freshbind.shared", true))
}

// endSpan ends a span. That an object is absent is an answer, and no error.
func endSpan(span trace.Span, err error) {
	switch {
	case err == nil:
	case IsAbsent(err):
		span.SetAttributes(attribute.Bool("freshbind.absent", true))
	default:
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}
