package routeserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
)

func TestExtAuthzGRPC(t *testing.T) {
	w := filled(t)
	connection, err := grpc.NewClient(strings.TrimPrefix(w.http.URL, "https://"), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		RootCAs: w.http.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com",
	})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	client := authv3.NewAuthorizationClient(connection)
	check := func(ctx context.Context, h *authv3.AttributeContext_HttpRequest) (*authv3.CheckResponse, error) {
		return client.Check(ctx, &authv3.CheckRequest{Attributes: &authv3.AttributeContext{Request: &authv3.AttributeContext_Request{Http: h}}})
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
	headers := func(name string) map[string]string {
		return map[string]string{"x-sandbox-id": name, "x-sandbox-namespace": "team-a"}
	}
	for name, tc := range map[string]struct {
		h    *authv3.AttributeContext_HttpRequest
		want string
	}{
		"running":  {&authv3.AttributeContext_HttpRequest{Headers: headers("one")}, "to 10.0.0.1:8888"},
		"by host":  {&authv3.AttributeContext_HttpRequest{Host: "80-team-a--six.example.com"}, "to [fd00::1]:80"},
		"by path":  {&authv3.AttributeContext_HttpRequest{Path: "/kruise/team-a--one/80/x"}, "to 10.0.0.1:80 /x"},
		"paused":   {&authv3.AttributeContext_HttpRequest{Headers: headers("paused")}, "409 Stopped"},
		"gone":     {&authv3.AttributeContext_HttpRequest{Headers: headers("gone")}, "410 Deleted"},
		"unknown":  {&authv3.AttributeContext_HttpRequest{Headers: headers("other")}, "404 NotFound"},
		"repeated": {&authv3.AttributeContext_HttpRequest{Headers: headers("one,six")}, "400 BadRequest"},
		"nothing":  {nil, "400 BadRequest"},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := check(ctx, tc.h)
			if err != nil {
				t.Fatal(err)
			}
			if got := grpcResponse(answer); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
	if _, err := check(t.Context(), &authv3.AttributeContext_HttpRequest{Headers: headers("one")}); err == nil {
		t.Error("answered without a token")
	}
}

func grpcResponse(r *authv3.CheckResponse) string {
	if ok := r.GetOkResponse(); ok != nil && r.GetStatus().GetCode() == 0 {
		set := map[string]string{}
		for _, h := range ok.GetHeaders() {
			set[h.GetHeader().GetKey()] = h.GetHeader().GetValue()
		}
		return strings.TrimSpace("to " + set[headerOriginalDst] + " " + set[headerNewPath])
	}
	denied := r.GetDeniedResponse()
	reason := ""
	for _, h := range denied.GetHeaders() {
		if h.GetHeader().GetKey() == headerReason {
			reason = h.GetHeader().GetValue()
		}
	}
	return fmt.Sprintf("%d %s", denied.GetStatus().GetCode(), reason)
}
