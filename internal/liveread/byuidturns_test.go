package liveread

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) { return t(req) }

// Lists of one namespace that take long keep no other namespace waiting.
func TestOneNamespaceHasOneListAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var listing atomic.Int32
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		g, err := NewUIDGetter(&rest.Config{Host: "http://api", Transport: transport(func(req *http.Request) (*http.Response, error) {
			if strings.Contains(req.URL.Path, "/namespaces/hostile/") {
				listing.Add(1)
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			return &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
				Body: io.NopCloser(strings.NewReader(`{"metadata":{},"items":[{"metadata":{"name":"a","uid":"uid-a"}}]}`)),
			}, nil
		})})
		if err != nil {
			t.Fatal(err)
		}
		of := func(namespace, uid string) Ref {
			r := ref(uid)
			r.Namespace = namespace
			return r
		}
		done := make(chan error)
		const calls = 10
		for i := range calls {
			go func() {
				_, err := g.Get(ctx, of("hostile", fmt.Sprint("made-up-", i)))
				done <- err
			}()
		}
		synctest.Wait()
		if n := listing.Load(); n != 1 {
			t.Errorf("%d lists of one namespace at once, want 1", n)
		}
		if found, err := g.Get(ctx, of("ns", "uid-a")); err != nil || found.GetName() != "a" {
			t.Errorf("Get() in another namespace = %v, error %v", found, err)
		}
		end()
		for range calls {
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("Get() = %v, want that it was given up", err)
			}
		}
	})
}
