package auditlog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wrapped is the log as providers export it. Their documentation names the fields; the values are ours.
func wrapped(t *testing.T, lines []string, wrap func(i int, line string) any) []string {
	t.Helper()
	var out []string
	for i, line := range lines {
		b, err := json.Marshal(wrap(i, line))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	return out
}

func TestWrappings(t *testing.T) {
	c := stale(t)
	message := func(i int, line string) any {
		return map[string]any{"id": fmt.Sprint(i), "timestamp": 1767348000000, "message": line}
	}
	azure := func(_ int, line string) any {
		return map[string]any{"time": "2026-01-02T10:00:00Z", "category": "kube-audit", "resourceId": "/SUBSCRIPTIONS/X",
			"operationName": "Microsoft.ContainerService/managedClusters/diagnosticLogs/Read",
			"properties":    map[string]any{"log": line + "\n", "stream": "stdout", "pod": "kube-apiserver-1"}}
	}
	list := func(key string, elements []string) string {
		return `{"messageType":"DATA_MESSAGE","` + key + `":[` + strings.Join(elements, ",") + "]}"
	}
	var exported []string
	for _, line := range c.lines {
		exported = append(exported, "2026-01-02T10:00:00.000Z "+line)
	}
	google := wrapped(t, c.lines, googleEntry)
	cases := map[string]string{
		"EKS, export to S3":        strings.Join(exported, "\n"),
		"EKS, subscription":        list("logEvents", wrapped(t, c.lines, message)),
		"EKS, filter-log-events":   list("events", wrapped(t, c.lines, message)),
		"EKS, a message a line":    strings.Join(wrapped(t, c.lines, message), "\n"),
		"EKS, Logs Insights":       "[" + strings.Join(wrapped(t, c.lines, func(_ int, l string) any { return map[string]any{"@message": l} }), ",\n") + "]",
		"AKS, storage account":     strings.Join(wrapped(t, c.lines, azure), "\n"),
		"AKS, event hub":           list("records", wrapped(t, c.lines, azure)),
		"GKE, sink":                strings.Join(google, "\n"),
		"GKE, gcloud logging read": "[\n" + strings.Join(google, ",\n") + "\n]",
		"beside other logs' lines": strings.Join(append(wrapped(t, []string{"I0102 10:00:00 started"}, azure), wrapped(t, c.lines, azure)...), "\n"),
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			if !Looks([]byte(text)[:200]) {
				t.Error("it does not look like an audit log")
			}
			got, missing := judge(t, text)
			if diff := cmp.Diff([]string{"c1: Stale"}, got); diff != "" {
				t.Errorf("verdicts (-want,+got):\n%s\n%v", diff, missing.Notes)
			}
		})
	}
}

// googleEntry is an entry of Cloud Audit Logs about the same request.
func googleEntry(i int, line string) any {
	var e struct {
		Verb                                     string
		User                                     struct{ Username string }
		ObjectRef                                struct{ APIGroup, APIVersion, Resource, Namespace, Name string }
		ResponseObject                           map[string]any
		RequestReceivedTimestamp, StageTimestamp string
	}
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		panic(err)
	}
	group, method := e.ObjectRef.APIGroup, "io.x-k8s.agents.v1beta1."
	if group == "" {
		group, method = "core", "io.k8s.core.v1."
	}
	return map[string]any{
		"logName": "projects/p/logs/cloudaudit.googleapis.com%2Factivity", "insertId": fmt.Sprint(i), "timestamp": e.RequestReceivedTimestamp,
		"receiveTimestamp": e.StageTimestamp, "resource": map[string]any{"type": "k8s_cluster"},
		"operation": map[string]any{"id": fmt.Sprint(i), "producer": "k8s.io", "first": true, "last": true},
		"protoPayload": map[string]any{
			"@type": "type.googleapis.com/google.cloud.audit.AuditLog", "serviceName": "k8s.io",
			"authenticationInfo": map[string]any{"principalEmail": e.User.Username},
			"methodName":         method + e.ObjectRef.Resource + "." + e.Verb,
			"resourceName":       group + "/" + e.ObjectRef.APIVersion + "/namespaces/" + e.ObjectRef.Namespace + "/" + e.ObjectRef.Resource + "/" + e.ObjectRef.Name,
			"status":             map[string]any{"code": 0}, "request": map[string]any{}, "response": e.ResponseObject,
		},
	}
}
