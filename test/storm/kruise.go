package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/test/fakekruise"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/warmpool"
)

// kruiseAgents is OpenKruise Agents, and how storms are made on it.
type kruiseAgents struct{ *warmpool.Kruise }

func (*kruiseAgents) strategies() [pools]string {
	return [pools]string{scenario.Recreate, warmpool.OwnRolling, warmpool.RollingUpdate}
}

func (k *kruiseAgents) begin(ctx context.Context, w *world) error {
	k.Wrap = w.ids.ofCreated
	return k.Begin(ctx, w.World)
}

// ofCreated gives each CREATE of a Sandbox an id: its name is generated, so that the log
// of the API server does not tell whose creation it was.
func (i *ids) ofCreated(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/"+fakekruise.Sandboxes.Resource) {
			return next.RoundTrip(r)
		}
		id := newID()
		r = r.Clone(r.Context())
		r.Header.Set(auditIDHeader, id)
		response, err := next.RoundTrip(r)
		if err != nil || response.StatusCode != http.StatusCreated {
			return response, err
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("read the created sandbox: %w", err)
		}
		response.Body = io.NopCloser(bytes.NewReader(body))
		var created unstructured.Unstructured
		if err := json.Unmarshal(body, &created.Object); err != nil {
			return nil, fmt.Errorf("decode the created sandbox: %w", err)
		}
		i.note(created.GetResourceVersion(), id)
		return response, nil
	})
}
