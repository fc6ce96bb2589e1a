package sentinel

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// Pace bounds what gateways are sent.
type Pace struct {
	// Interval is the time from one repetition of all deletions to the next.
	Interval time.Duration
	// Rate is how many messages a second one gateway gets at most: then it takes
	// longer than Interval.
	Rate int
	// Timeout is how long one message may take.
	Timeout time.Duration
}

// maxRetry is how long a gateway that does not answer is left alone at most.
const maxRetry = 10 * time.Second

// message is what OpenKruise's gateways take from their peers. It has no ID:
// gateways up to v0.3.0 go by that alone and in no order, and would drop the next
// sandbox of the name.
type message struct {
	Namespace       string `json:"namespace"`
	Name            string `json:"name"`
	UID             string `json:"uid"`
	State           string `json:"state"`
	ResourceVersion string `json:"resourceVersion"`
}

// gateway is sent all deletions again and again, and new ones at once.
type gateway struct {
	url       string
	client    *http.Client
	deletions *Deletions
	pace      Pace
	metrics   *Metrics
	// sent is the number of the latest deletion that it was sent.
	sent uint64
	// failing is set while it does not answer.
	failing bool
}

func (g *gateway) run(ctx context.Context) {
	for ctx.Err() == nil {
		started := time.Now()
		all, latest := g.deletions.all()
		g.sent = latest
		for _, d := range all {
			g.sendNew(ctx)
			g.send(ctx, d)
		}
		g.waitUntil(ctx, started.Add(g.pace.Interval))
		g.metrics.round.Set(time.Since(started).Seconds())
	}
}

// waitUntil sends what is new until then.
func (g *gateway) waitUntil(ctx context.Context, end time.Time) {
	timer := time.NewTimer(time.Until(end))
	defer timer.Stop()
	for {
		wake := g.sendNew(ctx)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-wake:
		}
	}
}

// sendNew sends what was deleted meanwhile, and returns a channel that is closed
// when there is more.
func (g *gateway) sendNew(ctx context.Context) <-chan struct{} {
	for {
		list, latest, wake := g.deletions.since(g.sent)
		if len(list) == 0 || ctx.Err() != nil {
			return wake
		}
		g.sent = latest
		for _, d := range list {
			g.send(ctx, d)
		}
	}
}

// send repeats a deletion, as often as it takes.
func (g *gateway) send(ctx context.Context, d *Deletion) {
	retry := 100 * time.Millisecond
	for ctx.Err() == nil && g.deletions.has(d) {
		started := time.Now()
		err := g.push(ctx, d)
		if err == nil {
			g.recovered(ctx)
			pause(ctx, time.Second/time.Duration(g.pace.Rate)-time.Since(started))
			return
		}
		g.failed(ctx, err)
		pause(ctx, retry)
		retry = min(2*retry, maxRetry)
	}
}

func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// push sends one message. It is an error when the gateway could not be asked; one
// that refuses the message would do so again.
func (g *gateway) push(ctx context.Context, d *Deletion) error {
	body, err := json.Marshal(message{
		Namespace: d.Namespace, Name: d.Name, UID: d.UID, State: "dead", ResourceVersion: strconv.FormatUint(uint64(d.Version), 10),
	})
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, g.pace.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("tell a gateway: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := g.client.Do(req)
	if err != nil {
		return fmt.Errorf("tell a gateway: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 4<<10))
	switch resp.StatusCode / 100 {
	case 2:
		g.metrics.messages.WithLabelValues(resultSent).Inc()
	case 4:
		g.metrics.messages.WithLabelValues(resultRefused).Inc()
	default:
		return fmt.Errorf("tell a gateway: it answers %s", resp.Status)
	}
	return nil
}

func (g *gateway) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	g.metrics.messages.WithLabelValues(resultFailed).Inc()
	if !g.failing {
		g.failing = true
		logf.FromContext(ctx).Error(err, "Gateway does not answer", "url", g.url)
	}
}

func (g *gateway) recovered(ctx context.Context) {
	if g.failing {
		g.failing = false
		logf.FromContext(ctx).Info("Gateway answers again", "url", g.url)
	}
}
