package page

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/test/builders"
)

const namespace = "prod"

// auditLog is one that kube-apiserver writes: each write raises the resourceVersion by one, and the clock by a second.
type auditLog struct {
	t    *testing.T
	text strings.Builder
	rv   int
	now  time.Time
}

func newAuditLog(t *testing.T) *auditLog {
	t.Helper()
	return &auditLog{t: t, rv: 100, now: time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)}
}

var resources = map[string]string{"SandboxTemplate": "sandboxtemplates", "SandboxWarmPool": "sandboxwarmpools", "SandboxClaim": "sandboxclaims",
	"Sandbox": "sandboxes", "Pod": "pods", "Namespace": "namespaces"}

func (l *auditLog) write(verb string, code int, u *unstructured.Unstructured) *unstructured.Unstructured {
	l.t.Helper()
	l.rv++
	l.now = l.now.Add(time.Second)
	u.SetResourceVersion(fmt.Sprint(l.rv))
	if verb == "create" {
		u.SetCreationTimestamp(metav1.NewTime(l.now))
	}
	gvk := u.GroupVersionKind()
	at := l.now.Format(time.RFC3339Nano)
	line, err := json.Marshal(map[string]any{
		"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "auditID": fmt.Sprint(l.rv), "stage": "ResponseComplete",
		"requestURI": "/apis/", "verb": verb, "user": map[string]any{"username": "u"},
		"objectRef": map[string]any{"resource": resources[gvk.Kind], "namespace": u.GetNamespace(), "name": u.GetName(),
			"apiGroup": gvk.Group, "apiVersion": gvk.Version},
		"responseStatus": map[string]any{"metadata": map[string]any{}, "code": code}, "responseObject": u.Object,
		"requestReceivedTimestamp": at, "stageTimestamp": at,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.text.Write(append(line, '\n'))
	return u
}

func (l *auditLog) create(u *unstructured.Unstructured) *unstructured.Unstructured {
	l.t.Helper()
	return l.write("create", 201, u)
}

func (l *auditLog) patch(u *unstructured.Unstructured) *unstructured.Unstructured {
	l.t.Helper()
	return l.write("patch", 200, u)
}

// cast is a template and a Recreate pool of it.
type cast struct {
	*auditLog
	name           string
	template, pool *unstructured.Unstructured
}

func (l *auditLog) cast(name string) *cast {
	l.t.Helper()
	c := &cast{auditLog: l, name: name}
	c.template = l.create(builders.MakeTemplate(namespace, name).Obj())
	c.pool = l.create(builders.MakePool(namespace, name).Template(name).Strategy("Recreate").Obj())
	return c
}

// birth is a ready member with its Pod.
func (c *cast) birth(name string) *unstructured.Unstructured {
	c.t.Helper()
	member := c.create(builders.MakeMember(c.pool, c.template).Name(name).Obj())
	c.create(builders.MakePod(member).Stored("node").Set([]any{map[string]any{"ip": "10.0.0.1"}}, "status", "podIPs").Obj())
	return c.patch(builders.SandboxFrom(member).Ready(true).Set([]any{"10.0.0.1"}, "status", "podIPs").Obj())
}

func (c *cast) update(image string) {
	c.t.Helper()
	c.template = c.patch(builders.TemplateFrom(c.template).Image(image).Generation(c.template.GetGeneration() + 1).Obj())
}

// serve gives a member to a new claim.
func (c *cast) serve(claim string, member *unstructured.Unstructured) {
	c.t.Helper()
	u := c.create(builders.MakeClaim(namespace, claim).Pool(c.name).Obj())
	u = c.patch(builders.ClaimFrom(u).Names(member.GetName()).Obj())
	c.patch(builders.Bound(member, u, c.template).Obj())
	c.patch(builders.ClaimFrom(u).Ready(true).Obj())
}
