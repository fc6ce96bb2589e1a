package controlplane

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWatched(t *testing.T) {
	templates := schema.GroupResource{Group: "extensions.agents.x-k8s.io", Resource: "sandboxtemplates"}
	cases := map[string]struct {
		url  string
		want schema.GroupResource
		no   bool
	}{
		"all namespaces": {url: "/apis/extensions.agents.x-k8s.io/v1beta1/sandboxtemplates?watch=true", want: templates},
		"one namespace":  {url: "/apis/extensions.agents.x-k8s.io/v1/namespaces/a/sandboxtemplates?watch=1", want: templates},
		"one object":     {url: "/api/v1/namespaces/a/pods/p?watch", want: schema.GroupResource{Resource: "pods"}},
		"core group":     {url: "/api/v1/pods?watch=true&resourceVersion=3", want: schema.GroupResource{Resource: "pods"}},
		"namespaces":     {url: "/api/v1/namespaces?watch=true", want: schema.GroupResource{Resource: "namespaces"}},
		"one namespace object": {
			url: "/api/v1/namespaces/a?watch=true", want: schema.GroupResource{Resource: "namespaces"},
		},
		"a list":       {url: "/api/v1/pods", no: true},
		"watch=false":  {url: "/api/v1/pods?watch=False", no: true},
		"watch=0":      {url: "/api/v1/pods?watch=0", no: true},
		"no resource":  {url: "/api/v1?watch=true", no: true},
		"another path": {url: "/healthz?watch=true", no: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			parsed, err := url.Parse("https://server" + tc.url)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := watched(parsed)
			if ok == tc.no {
				t.Errorf("is a watch: %t", ok)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("resource (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestFraming(t *testing.T) {
	const (
		json     = "application/json"
		protobuf = "application/vnd.kubernetes.protobuf"
	)
	cases := map[string]struct {
		contentType, body string
		want              []string
	}{
		"json":            {contentType: json, body: "{1}\n{2}\n", want: []string{"{1}\n", "{2}\n"}},
		"json, stream":    {contentType: json + ";stream=watch", body: "{1}\n", want: []string{"{1}\n"}},
		"json, cut short": {contentType: json, body: "{1}\n{2", want: []string{"{1}\n", "{2"}},
		"protobuf": {
			contentType: protobuf + ";stream=watch", body: "\x00\x00\x00\x01a\x00\x00\x00\x02b\n",
			want: []string{"\x00\x00\x00\x01a", "\x00\x00\x00\x02b\n"},
		},
		"protobuf, in head": {contentType: protobuf, body: "\x00\x00", want: []string{"\x00\x00"}},
		"protobuf, in body": {contentType: protobuf, body: "\x00\x00\x00\x02a", want: []string{"\x00\x00\x00\x02a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cut, err := framingOf(tc.contentType)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			body := bufio.NewReader(bytes.NewBufferString(tc.body))
			for err == nil {
				var frame []byte
				if frame, err = cut(body); len(frame) > 0 {
					got = append(got, string(frame))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || !errors.Is(err, io.EOF) {
				t.Errorf("end %v, frames (-want,+got):\n%s", err, diff)
			}
		})
	}
}

func TestFramingUnknown(t *testing.T) {
	for _, contentType := range []string{"application/cbor-seq", "text/html", "", ";"} {
		if _, err := framingOf(contentType); err == nil {
			t.Errorf("content type %q has a framing", contentType)
		}
	}
	cut, err := framingOf("application/vnd.kubernetes.protobuf")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cut(bufio.NewReader(bytes.NewBufferString("\xff\xff\xff\xff"))); err == nil {
		t.Error("a frame of 4 GiB was accepted")
	}
}

func TestEndsInitialEvents(t *testing.T) {
	const annotation = `"annotations":{"k8s.io/initial-events-end":"true"}`
	cases := map[string]struct {
		frame string
		want  bool
	}{
		"its bookmark":         {frame: `{"type":"BOOKMARK","object":{"metadata":{` + annotation + `}}}`, want: true},
		"another bookmark":     {frame: `{"type":"BOOKMARK","object":{"metadata":{}}}`},
		"an object that lies":  {frame: `{"type":"ADDED","object":{"metadata":{"name":"BOOKMARK",` + annotation + `}}}`},
		"protobuf":             {frame: "\x00\x00\x00\x30\x0a\x08BOOKMARK\x12\x24k8s\x00...k8s.io/initial-events-end...", want: true},
		"shorter than a type":  {frame: "{}"},
		"nothing but the type": {frame: "BOOKMARK"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := endsInitialEvents([]byte(tc.frame)); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestWithoutCBOR(t *testing.T) {
	cases := map[string]struct {
		accept []string
		want   []string
	}{
		"none":      {want: []string{"application/json"}},
		"cbor only": {accept: []string{"application/cbor"}, want: []string{"application/json"}},
		"both":      {accept: []string{"application/cbor, application/json;q=0.5"}, want: []string{"application/json;q=0.5"}},
		"protobuf": {
			accept: []string{"application/vnd.kubernetes.protobuf", "application/cbor-seq", "application/json"},
			want:   []string{"application/vnd.kubernetes.protobuf,application/json"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, withoutCBOR(tc.accept)); diff != "" {
				t.Errorf("accepted (-want,+got):\n%s", diff)
			}
		})
	}
}
