package routeserver

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/freshbind/freshbind/routes"
)

// The headers of an answer.
const (
	headerDestination = "X-Freshbind-Destination"
	headerNewPath     = "X-Freshbind-Path"
	headerSandboxUID  = "X-Freshbind-Sandbox-Uid"
	headerStatus      = "X-Freshbind-Status"
	headerReason      = "X-Freshbind-Reason"
	headerState       = "X-Freshbind-State"
	// headerOriginalDst is what Envoy's ORIGINAL_DST clusters go by.
	headerOriginalDst = "X-Envoy-Original-Dst-Host"
)

// convention is how a gateway asks, and what it understands.
type convention struct {
	name string
	// request reads what the gateway tells of the request that it has.
	request func(r *http.Request) (request, error)
	// refusal is the status that a refusal is answered with.
	refusal func(code int) int
	envoy   bool
}

func asIs(code int) int { return code }

const (
	pathNginx   = "/v1/check/nginx"
	pathTraefik = "/v1/check/traefik"
	pathEnvoy   = "/v1/check/envoy"
)

// nginx's auth_request passes the client's headers on. It knows 401 and 403 as
// refusals and makes an error 500 of everything else, so the status is in a
// header.
var nginx = convention{
	name: "nginx", request: forwarded("X-Original-Host", "X-Original-Uri"),
	refusal: func(int) int { return http.StatusForbidden },
}

var traefik = convention{name: "traefik", request: forwarded("X-Forwarded-Host", "X-Forwarded-Uri"), refusal: asIs}

// envoyHTTP asks with the client's host, and its path behind ours.
var envoyHTTP = convention{
	name: "envoy-http", refusal: asIs, envoy: true,
	request: func(r *http.Request) (request, error) {
		return request{header: values(r.Header), host: r.Host, path: strings.TrimPrefix(r.RequestURI, pathEnvoy)}, nil
	},
}

const nameEnvoyGRPC = "envoy-grpc"

func conventions() []string {
	return []string{nginx.name, traefik.name, envoyHTTP.name, nameEnvoyGRPC}
}

func forwarded(host, path string) func(*http.Request) (request, error) {
	return func(r *http.Request) (request, error) {
		out := request{header: values(r.Header)}
		var err error
		if out.host, err = single(out.header, host); err != nil {
			return out, err
		}
		out.path, err = single(out.header, path)
		return out, err
	}
}

func values(h http.Header) func(string) []string {
	return func(name string) []string { return h[name] }
}

// check answers whether, and where to, a gateway may send a request.
func (s *Server) check(c convention) http.HandlerFunc {
	count := s.metrics.checks(c.name)
	return func(w http.ResponseWriter, r *http.Request) {
		asked, err := c.request(r)
		var v verdict
		if err != nil {
			v = verdict{code: http.StatusBadRequest, reason: reasonBadRequest, message: err.Error()}
		} else {
			v = judge(s.table, asked)
		}
		count(v.reason)
		if v.code != http.StatusOK {
			refuse(w, &v, c.refusal(v.code))
			return
		}
		h := w.Header()
		destination := v.destination()
		h[headerDestination] = []string{destination}
		h[headerSandboxUID] = []string{v.answer.SandboxUID().String()}
		if c.envoy {
			h[headerOriginalDst] = []string{destination}
		}
		if v.target.path != "" {
			h[headerNewPath] = []string{v.target.path}
		}
		w.WriteHeader(http.StatusOK)
	}
}

func refuse(w http.ResponseWriter, v *verdict, code int) {
	h := w.Header()
	for name, value := range refusalHeaders(v) {
		h.Set(name, value)
	}
	http.Error(w, v.text(), code)
}

func refusalHeaders(v *verdict) map[string]string {
	out := map[string]string{headerStatus: strconv.Itoa(v.code), headerReason: v.reason}
	switch v.answer.Status {
	case routes.NotRunning:
		out[headerState] = v.answer.State().String()
	case routes.NotKnown:
		if v.code == http.StatusServiceUnavailable {
			out["Retry-After"] = "1"
		}
	}
	return out
}
