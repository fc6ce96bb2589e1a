package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/scheduler"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// requestsOfEach is how often each question is asked.
const requestsOfEach = 300

// maxAnswer is how long the extender may take at the median, by nodes.
var maxAnswer = map[int]float64{1000: 1, 5000: 3}

// asked is how long one kind of question took, from request to answer.
type asked struct {
	verb           string
	nodes, members int
	took           []time.Duration
}

func (a asked) row() row {
	r := row{
		what: fmt.Sprintf("p50 of %s, %d nodes, %d members in the namespace", a.verb, a.nodes, a.members), unit: "ms", aim: maxAnswer[a.nodes],
	}
	// The spread is that of thirds of all requests.
	for third := range 3 {
		part := a.took[third*len(a.took)/3 : (third+1)*len(a.took)/3]
		r.figures = append(r.figures, 1000*checker.Percentile(part, 50).Seconds())
	}
	return r
}

// askAboutMembers asks the running extender, as kube-scheduler does, about a
// fresh member that waits for a node, in a pool that is large.
func askAboutMembers(ctx context.Context, w *scenario.World, o options, out io.Writer) ([]asked, error) {
	full := &world{World: w}
	c, err := full.populate(ctx, "asked", 1, o.members, true)
	if err != nil {
		return nil, err
	}
	waits := builders.MakeMember(c.pools[0], c.template).Name("waits").Obj()
	member, err := c.ns.Resource(upstream.Sandboxes).Create(ctx, waits, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create the member that waits: %w", err)
	}
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(builders.MakePod(member).UID("waits").Obj().Object, &pod); err != nil {
		return nil, fmt.Errorf("make the pod that waits: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(w.Guard.CA())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	var found []asked
	for _, nodes := range []int{1000, 5000} {
		names := make([]string, nodes)
		for i := range names {
			names[i] = fmt.Sprintf("node-%d.region-1.compute.internal", i)
		}
		body, err := json.Marshal(extenderv1.ExtenderArgs{Pod: &pod, NodeNames: &names})
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		for _, path := range []string{scheduler.FilterPath, scheduler.PrioritizePath} {
			a := asked{verb: strings.TrimPrefix(path, scheduler.PathPrefix+"/"), nodes: nodes, members: o.members}
			for range requestsOfEach {
				start := time.Now()
				if err := post(ctx, client, w.Guard.WebhookURL()+path, body); err != nil {
					return nil, err
				}
				a.took = append(a.took, time.Since(start))
			}
			found = append(found, a)
			_, _ = fmt.Fprintf(out, "%s, %d nodes, %d members: p50 %s, p99 %s\n", a.verb, nodes, o.members, checker.Percentile(a.took, 50), checker.Percentile(a.took, 99))
		}
	}
	return found, nil
}

// post waits for the whole answer.
func post(ctx context.Context, client *http.Client, url string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask extender: %w", err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("ask extender: %w", err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	if err != nil {
		return fmt.Errorf("ask extender: %w", err)
	}
	return nil
}
