package gatewaytest

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strconv"
)

// testCase is a named test. Where routestest has the same weakness, it has the
// same name.
type testCase struct {
	name, about string
	// pushes is set when it needs something to push to, needsRoute when it needs a
	// gateway that takes a route from a push, waits when it takes long.
	pushes, needsRoute, waits bool
	run                       func(*trial)
}

const pushAdds = "push-adds-route"

func cases() []testCase {
	list := []testCase{
		{name: "client-names-address", run: clientNamesAddress,
			about: "A client says in a header which address its request goes to, and is believed."},
		{name: "push-by-anyone", pushes: true, run: pushByAnyone,
			about: "Whoever can reach the refresh endpoint can change routes."},
		{name: "push-oversized", pushes: true, run: pushOversized,
			about: "A message of any size is taken."},
		{name: pushAdds, pushes: true, run: pushAddsRoute,
			about: "A push about a sandbox that no watch has seen adds a route."},
	}
	for _, c := range []testCase{
		{name: "push-malformed-version", run: malformedVersion,
			about: "A version without an order is taken."},
		{name: "late-event-after-delete", run: lateAfterDelete,
			about: "After a delete the next message, however old, wins."},
		{name: "status-update-after-dead-push", run: statusAfterDead,
			about: "A delete has the version from before the deletion: the next status update undoes it."},
		{name: "forged-version", run: forgedVersion,
			about: "One message with a huge version keeps all true ones out."},
		{name: "address-reused", run: addressReused,
			about: "Another sandbox has the IP: the older route to it is still served."},
		{name: "id-takeover-ends", run: takeoverEnds,
			about: "A sandbox with the same ID takes the route, and when it is gone there is none."},
		{name: "late-delete-of-earlier-sandbox", run: lateDelete,
			about: "A late delete of a sandbox removes the route of the next one with its name."},
		{name: "paused-is-kept-not-served", run: pausedIsKept,
			about: "A paused sandbox is served, or is not served again once it runs."},
		{name: "late-event-long-after-delete", waits: true, run: longAfterDelete,
			about: "Fences expire: what is late enough brings a deleted route back."},
	} {
		c.pushes, c.needsRoute = true, true
		list = append(list, c)
	}
	return list
}

// clientNamesAddress tries what gateways are known to go by between themselves.
func clientNamesAddress(t *trial) {
	m := t.sandbox("unknown")
	to := net.JoinHostPort(m.IP, strconv.Itoa(t.o.Canary.Port()))
	for _, header := range [][2]string{
		{"X-Sandbox-Pod-Ip", m.IP},
		{"X-Envoy-Original-Dst-Host", to},
		{"Request-Header-Modifier", `{"x-envoy-original-dst-host":"` + to + `"}`},
	} {
		if t.served(m, http.Header{header[0]: {header[1]}}) && t.found == "" {
			t.found = "with the header " + header[0] + " a request arrives at the address that it names"
		}
	}
}

// pushByAnyone says only that a sandbox is gone which never was.
func pushByAnyone(t *trial) {
	m := t.sandbox("unknown")
	m.State, m.ResourceVersion = "dead", "1"
	status, err := t.o.Gateway.push(t.ctx, t.o.Gateway.Anyone, encode(m.Message))
	t.err = err
	if status/100 == 2 {
		t.found = fmt.Sprintf("a push without credentials is answered with %d", status)
	}
}

func pushOversized(t *trial) {
	m := t.sandbox("unknown")
	m.State, m.ResourceVersion = "dead", "1"
	body := bytes.Replace(encode(m.Message), []byte("{"), append([]byte("{"), bytes.Repeat([]byte(" "), 4<<20)...), 1)
	status, err := t.o.Gateway.push(t.ctx, t.o.Gateway.Peer, body)
	// A server that has read enough closes the connection.
	if err == nil && status/100 == 2 {
		t.found = fmt.Sprintf("a push of %d MiB is answered with %d", len(body)>>20, status)
	}
}

func pushAddsRoute(t *trial) {
	m := t.sandbox("s1")
	t.wantNone(m, "before the push")
	t.push(m, "running", 10)
	t.wantNone(m, "after the push")
}

func malformedVersion(t *trial) {
	for _, version := range []string{"", "x", "-1", "010", "1.5"} {
		m := t.sandbox("s" + strconv.Itoa(len(version)))
		bad := m.Message
		bad.ResourceVersion = version
		t.send(bad)
		t.wantNone(m, fmt.Sprintf("after a push with version %q", version))
		t.latest[m.Name] = m
	}
}

// running has the first sandbox run, told by a push.
func (t *trial) running() message {
	m := t.sandbox("s1")
	t.push(m, "running", 10)
	t.want(m, "at first")
	return m
}

func lateAfterDelete(t *trial) {
	m := t.running()
	t.push(m, "dead", 20)
	t.wantNone(m, "after the delete")
	t.push(m, "running", 10)
	t.wantNone(m, "after a late push")
}

func statusAfterDead(t *trial) {
	m := t.running()
	t.push(m, "dead", 10)
	t.push(m, "running", 11)
	t.wantNone(m, "after a status update from before the deletion")
}

func forgedVersion(t *trial) {
	m := t.running()
	t.push(m, "running", 1<<62)
	t.push(m, "dead", 20)
	t.wantNone(m, "after a forged push and the delete")
}

func addressReused(t *trial) {
	m := t.running()
	next := t.sandbox("s2")
	t.push(next, "running", 20)
	t.want(next, "the sandbox that has the IP now")
	t.wantNone(m, "while another sandbox has its IP")
}

func takeoverEnds(t *trial) {
	m := t.running()
	thief := t.sandbox("s2")
	thief.ID, thief.IP = m.ID, elsewhere
	t.push(thief, "running", 20)
	t.push(thief, "dead", 30)
	t.push(m, "running", 10)
	t.want(m, "after the taker is gone")
}

func lateDelete(t *trial) {
	m := t.running()
	t.push(m, "dead", 20)
	next := t.sandbox("s1")
	t.push(next, "running", 30)
	t.want(next, "after it was created again")
	t.push(m, "dead", 20)
	t.want(next, "after a late delete of the one before")
}

func pausedIsKept(t *trial) {
	m := t.running()
	t.push(m, "paused", 20)
	t.wantNone(m, "while paused")
	t.push(m, "running", 30)
	t.want(m, "once it runs again")
}

func longAfterDelete(t *trial) {
	m := t.running()
	t.push(m, "dead", 20)
	t.wait(t.o.FenceWait)
	// Fences that have expired are swept when something changes.
	t.push(t.sandbox("s2"), "running", 30)
	t.push(m, "running", 10)
	t.wantNone(m, "after a late push")
}
