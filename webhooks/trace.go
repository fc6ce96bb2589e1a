package webhooks

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/freshbind/freshbind/internal/platform"
)

// traceOutcome says in the span of the call, if it has one, what came of it.
func traceOutcome(ctx context.Context, w platform.Write, o outcome) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(
		attribute.String("freshbind.operation", string(w.Operation)), attribute.String("freshbind.verdict", o.verdict()),
		attribute.String("freshbind.reason", o.reason()), attribute.String("freshbind.mode", string(o.mode)),
		attribute.String("k8s.namespace.name", w.Judged().GetNamespace()), attribute.String("freshbind.sandbox", w.Judged().GetName()),
		attribute.String("freshbind.claim", w.Claim.Name))
	if o.err != nil {
		span.SetStatus(codes.Error, o.err.Error())
	}
}
