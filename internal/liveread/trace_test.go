package liveread

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Whoever waits for a read that is in another call's trace is told in its own.
func TestASharedReadSaysSo(t *testing.T) {
	t.Cleanup(func() { otel.SetTracerProvider(noop.NewTracerProvider()) })
	synctest.Test(t, func(t *testing.T) {
		seen := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(seen))
		otel.SetTracerProvider(provider)
		ctx, call := provider.Tracer("test").Start(t.Context(), "call")
		held := make(chan struct{})
		r := NewReader(getterFunc(func(context.Context, Ref) (*unstructured.Unstructured, error) {
			<-held
			return versioned(1), nil
		}), nil, WithTimeout(time.Hour))
		var wg sync.WaitGroup
		// The first reads, the second causes the next read, and the third shares that.
		for range 3 {
			wg.Go(func() {
				if _, err := r.Get(ctx, ref("a")); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		close(held)
		wg.Wait()
		call.End()
		reads, shared := 0, 0
		for _, s := range seen.Ended() {
			if s.Name() != "live read sandboxtemplates" {
				continue
			}
			reads++
			for _, a := range s.Attributes() {
				if a.Key == "freshbind.shared" && a.Value.AsBool() {
					shared++
				}
			}
		}
		if reads != 3 || shared != 1 {
			t.Errorf("%d spans of reads, %d of them shared; want 3, and 1", reads, shared)
		}
	})
}
