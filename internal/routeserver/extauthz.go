package routeserver

import (
	"context"
	"net/http"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/freshbind/freshbind/routes"
)

// maxMessage bounds a CheckRequest in bytes.
const maxMessage = 64 << 10

// extAuthz is Envoy's external authorization.
type extAuthz struct {
	authv3.UnimplementedAuthorizationServer
	table *routes.Table
	count func(reason string)
}

func (s *Server) grpc() http.Handler {
	server := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage))
	authv3.RegisterAuthorizationServer(server, &extAuthz{table: s.table, count: s.metrics.checks(nameEnvoyGRPC)})
	return server
}

// Check implements authv3.AuthorizationServer.
func (e *extAuthz) Check(_ context.Context, r *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	v := judge(e.table, requestOf(r.GetAttributes().GetRequest().GetHttp()))
	e.count(v.reason)
	if v.code != http.StatusOK {
		return denied(&v), nil
	}
	destination := v.destination()
	set := []*corev3.HeaderValueOption{
		header(headerOriginalDst, destination), header(headerDestination, destination), header(headerSandboxUID, v.answer.SandboxUID().String()),
	}
	if v.target.path != "" {
		set = append(set, header(headerNewPath, v.target.path))
	}
	return &authv3.CheckResponse{
		Status:       &status.Status{Code: int32(codes.OK)},
		HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{Headers: set}},
	}, nil
}

func denied(v *verdict) *authv3.CheckResponse {
	out := &authv3.DeniedHttpResponse{Status: &typev3.HttpStatus{Code: typev3.StatusCode(v.code)}, Body: v.text() + "\n"}
	for name, value := range refusalHeaders(v) {
		out.Headers = append(out.Headers, header(name, value))
	}
	return &authv3.CheckResponse{
		Status:       &status.Status{Code: int32(codes.PermissionDenied), Message: v.reason},
		HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: out},
	}
}

// header replaces whatever the client sent under that name.
func header(name, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: name, Value: value},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}

// requestOf reads the headers in either form. Envoy joins repeated ones by a
// comma in one form, and lists them in the other.
func requestOf(h *authv3.AttributeContext_HttpRequest) request {
	all := http.Header{}
	for name, value := range h.GetHeaders() {
		all.Add(name, value)
	}
	for _, raw := range h.GetHeaderMap().GetHeaders() {
		value := raw.GetValue()
		if value == "" {
			value = string(raw.GetRawValue())
		}
		all.Add(raw.GetKey(), value)
	}
	return request{header: values(all), host: h.GetHost(), path: h.GetPath()}
}
