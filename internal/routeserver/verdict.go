package routeserver

import (
	"net/http"
	"net/netip"

	"github.com/freshbind/freshbind/routes"
)

// What else than a routes.Reason a request can be refused for.
const (
	reasonServing      = "Serving"
	reasonNotFound     = "NotFound"
	reasonBadRequest   = "BadRequest"
	reasonOtherSandbox = "OtherSandbox"
)

// reasons is the closed set of what becomes of a check.
func reasons() []string {
	out := []string{reasonServing, reasonNotFound, reasonBadRequest, reasonOtherSandbox}
	for _, r := range routes.Reasons() {
		out = append(out, r.String())
	}
	return out
}

var httpCodes = [...]int{
	routes.NotKnown: http.StatusServiceUnavailable, routes.Serving: http.StatusOK, routes.NotFound: http.StatusNotFound,
	routes.NotRunning: http.StatusConflict, routes.Gone: http.StatusGone,
}

// verdict is the answer to a check.
type verdict struct {
	code   int
	reason string
	// message says in words what a bad request lacks; "" otherwise.
	message string
	target  target
	answer  routes.Answer
}

// judge says where a request is to go.
func judge(table *routes.Table, r request) verdict {
	t, err := parseTarget(r)
	if err != nil {
		return verdict{code: http.StatusBadRequest, reason: reasonBadRequest, message: err.Error()}
	}
	v := verdictOf(table.Lookup(t.id))
	v.target = t
	known := v.answer.Status == routes.Serving || v.answer.Status == routes.NotRunning
	if known && t.uid != "" && routes.ParseUID(t.uid) != v.answer.SandboxUID() {
		v.code, v.reason, v.answer = http.StatusGone, reasonOtherSandbox, routes.Answer{Status: routes.Gone, Reason: routes.Deleted, Age: v.answer.Age}
	}
	return v
}

func verdictOf(a routes.Answer) verdict {
	v := verdict{code: httpCodes[a.Status], reason: a.Reason.String(), answer: a}
	switch a.Status {
	case routes.Serving:
		v.reason = reasonServing
	case routes.NotFound:
		v.reason = reasonNotFound
	}
	return v
}

// destination is where the request is to go; only for a sandbox that is served.
func (v *verdict) destination() string {
	return netip.AddrPortFrom(v.answer.Address(), v.target.port).String()
}

// text says in words why a request is refused.
func (v *verdict) text() string {
	switch {
	case v.message != "":
		return v.message
	case v.code == http.StatusNotFound:
		return "there is no sandbox " + v.target.id
	case v.code == http.StatusConflict:
		return "sandbox " + v.target.id + " is not running: " + v.reason + ", state " + v.answer.State().String()
	case v.code == http.StatusGone:
		return "sandbox " + v.target.id + " is gone: " + v.reason
	}
	return "where sandbox " + v.target.id + " is, is not known for certain: " + v.reason
}
