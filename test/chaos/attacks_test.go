package chaos

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/freshbind/freshbind/webhooks"
)

// paths are what the API server calls.
func (w *world) paths() []string {
	mutating, validating := webhooks.Configurations(w.platform.Admission(), webhooks.Endpoint{URL: w.Guard.WebhookURL()}, webhooks.Scope{})
	var all []string
	for _, h := range mutating.Webhooks {
		all = append(all, *h.ClientConfig.URL)
	}
	for _, h := range validating.Webhooks {
		all = append(all, *h.ClientConfig.URL)
	}
	for i := range all {
		all[i] = strings.TrimPrefix(all[i], w.Guard.WebhookURL())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// malformed are bodies that no API server sends, about Sandboxes of a group and version.
func malformed(group, version string) map[string]string {
	api := group + "/" + version
	review := func(request string) string {
		return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":` + request + `}`
	}
	object := func(object string) string {
		return review(`{"uid":"u","operation":"UPDATE","kind":{"group":"` + group + `","version":"` + version + `","kind":"Sandbox"},` +
			`"resource":{"group":"` + group + `","version":"` + version + `","resource":"sandboxes"},"namespace":"default","name":"x",` +
			`"object":` + object + `,"oldObject":` + object + `}`)
	}
	return map[string]string{
		"nothing": "", "half": `{"apiVersion":"admission.k8s.io/v1","kind":"Admis`, "null": "null", "a list": "[]", "a number": "1",
		"no request": review("null"), "an empty request": review("{}"), "another version": strings.Replace(review(`{"uid":"u"}`), "/v1", "/v9", 1),
		"another kind": strings.Replace(review(`{"uid":"u"}`), "AdmissionReview", "Pod", 1),
		"no object":    object("null"), "an empty object": object("{}"), "a list for an object": object("[]"), "text for an object": object(`"x"`),
		"numbers for owners": object(`{"apiVersion":"` + api + `","kind":"Sandbox","metadata":{"ownerReferences":[1,2]}}`),
		"text for metadata":  object(`{"apiVersion":"` + api + `","kind":"Sandbox","metadata":"x"}`),
		"text for spec":      object(`{"apiVersion":"` + api + `","kind":"Sandbox","metadata":{"name":"x"},"spec":"x"}`),
		"deep":               object(strings.Repeat(`{"a":`, 50_000) + "1" + strings.Repeat("}", 50_000)),
		"no UTF-8":           object("{\"\xff\xfe\":\"\xc3\x28\"}"),
	}
}

// client trusts a replica's certificate, and keeps no connection.
func (r *replica) client() *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: r.trust(), DisableKeepAlives: true}}
}

func (r *replica) trust() *tls.Config {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(r.CA())
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// post sends a body and returns what came back; a connection that Freshbind ends is an
// answer, too.
func (s *stage) post(ctx context.Context, path string, body io.Reader) (status int, answer string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.w.Guard.WebhookURL()+path, body)
	s.must(err)
	request.Header.Set("Content-Type", "application/json")
	response, err := s.w.replicas[0].client().Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	const some = 1 << 20
	text, err := io.ReadAll(io.LimitReader(response.Body, some))
	if err != nil {
		return response.StatusCode, err.Error()
	}
	return response.StatusCode, string(text)
}

// answered posts a body until there is an answer: whoever has lost its lease, as on a machine
// that stands still, is gone for a moment. Nobody else is.
func (s *stage) answered(what, path, body string) (answer string) {
	lost, unanswered := s.w.replicas[0].leasesLost(s.t), 0
	s.eventually(what+" answered at "+path, func(ctx context.Context) (string, bool) {
		var status int
		if status, answer = s.post(ctx, path, strings.NewReader(body)); status == 0 {
			unanswered++
		}
		return answer, status != 0
	})
	if unanswered > 0 && s.w.replicas[0].leasesLost(s.t) == lost {
		s.t.Errorf("%s at %s had no answer %d times", what, path, unanswered)
	}
	return answer
}

// reviewsMalformed are answered, and none of them makes Freshbind panic.
func reviewsMalformed(s *stage) (func(context.Context) (string, bool), func()) {
	was, lost := s.w.replicas[0].Starts(), s.w.replicas[0].leasesLost(s.t)
	// A world without agent-sandbox has no version of its API.
	version := cmp.Or(s.w.Version, "v1alpha1")
	for name, body := range malformed(s.w.platform.Admission().Members.Group, version) {
		for _, path := range s.w.paths() {
			answer := s.answered(name, path, body)
			if strings.Contains(answer, "panic") {
				s.t.Errorf("%s at %s: %s", name, path, answer)
			}
		}
	}
	if n := s.w.replicas[0].Starts() - was - (s.w.replicas[0].leasesLost(s.t) - lost); n > 0 {
		s.t.Errorf("Freshbind ended %d times", n)
	}
	return now("all were answered", func() {})
}

// bodiesHuge are sent several at once, each larger than what etcd stores by far. None
// is judged.
func bodiesHuge(s *stage) (func(context.Context) (string, bool), func()) {
	const size, atOnce = 64 << 20, 4
	paths := [atOnce]string{"/bind", "/bind-pod", "/coldstart", "/birth"}
	var sent sync.WaitGroup
	for i := range atOnce {
		sent.Go(func() {
			body := io.MultiReader(strings.NewReader(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"`),
				io.LimitReader(letters{}, size), strings.NewReader(`"}}`))
			if status, answer := s.post(s.t.Context(), paths[i], body); strings.Contains(answer, `"allowed":true`) {
				s.t.Errorf("%d MiB at %s: allowed (%d)", size>>20, paths[i], status)
			}
		})
	}
	sent.Wait()
	return now("all were answered", func() {})
}

// letters never ends.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	copy(p, bytes.Repeat([]byte("a"), len(p)))
	return len(p), nil
}

// bodiesSlow are requests whose body stops coming.
func bodiesSlow(s *stage) (func(context.Context) (string, bool), func()) {
	_, end := s.connected(s.w.many(50, 1000), func(int) string { return announced(1000, "{") })
	return now("they are open", end)
}

// announced is the beginning of a request with a body of so many bytes, of which some come.
func announced(size int, sent string) string {
	return fmt.Sprintf("POST /bind HTTP/1.1\r\nHost: freshbind\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", size, sent)
}

// bodiesAnnounced are large, of as many namespaces, and stop after their beginnings: they
// would take all the room that large reviews have.
func bodiesAnnounced(s *stage) (func(context.Context) (string, bool), func()) {
	const large, head, senders = 300_000, 16 << 10, 200
	_, end := s.connected(senders, func(i int) string {
		return announced(large, fmt.Sprintf(`{"request":{"namespace":"sender-%d"%s`, i, strings.Repeat(" ", head)))
	})
	review := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","namespace":%q,"object":{"padding":%q}}}`,
		s.In(), strings.Repeat("a", 300<<10))
	return func(ctx context.Context) (string, bool) {
		status, _ := s.post(ctx, "/bind", strings.NewReader(review))
		return fmt.Sprintf("a large review gets %d", status), status == http.StatusOK
	}, end
}

// connectionsMany say nothing.
func connectionsMany(s *stage) (func(context.Context) (string, bool), func()) {
	opened, end := s.connected(s.w.many(500, 10_000), func(int) string { return "" })
	return now(fmt.Sprintf("%d connections", opened), end)
}

// connected opens connections that say this much.
func (s *stage) connected(count int, say func(i int) string) (opened int, end func()) {
	address, err := url.Parse(s.w.Guard.WebhookURL())
	s.must(err)
	var open []*tls.Conn
	for i := range count {
		c, err := tls.Dial("tcp", address.Host, s.w.replicas[0].trust())
		s.must(err)
		open = append(open, c)
		_, err = io.WriteString(c, say(i))
		s.must(err)
	}
	return len(open), func() {
		for _, c := range open {
			_ = c.Close()
		}
	}
}
