package app

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/freshbind/freshbind/internal/cli"
)

const (
	hashTemplate = `
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxTemplate
metadata: {name: python, namespace: prod}
spec:
  podTemplate:
    spec: {containers: [{name: c, image: "a:v1"}]}
`
	// What the platform makes of hashTemplate.
	hashSandbox = `
apiVersion: agents.x-k8s.io/v1alpha1
kind: Sandbox
metadata: {name: python-7xk2p}
spec:
  replicas: 1
  podTemplate:
    metadata: {labels: {a: b}}
    spec:
      automountServiceAccountToken: false
      dnsPolicy: None
      dnsConfig: {nameservers: [8.8.8.8, 1.1.1.1]}
      containers: [{name: c, image: "a:v1", resources: {}}]
`
	wantHash      = "v1-9dee67322170e36d"
	acceptedKinds = "accepted are SandboxTemplate of extensions.agents.x-k8s.io and Sandbox of agents.x-k8s.io"
)

func TestHash(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	template, sandbox := write("template.yaml", hashTemplate), write("sandbox.yaml", hashSandbox)
	list := `{"kind": "List", "apiVersion": "v1", "items": [{"kind": "Sandbox", "apiVersion": "agents.x-k8s.io/v1beta1", "spec": {"podTemplate": {"spec": {}}}}]}`
	cases := map[string]struct {
		args    []string
		stdin   string
		want    string
		wantErr string
		code    int
	}{
		"template": {args: []string{"-f", template}, want: "SandboxTemplate/prod/python  " + wantHash + "\n"},
		"two files": {
			args: []string{"-f", template, "--filename", sandbox},
			want: "SandboxTemplate/prod/python  " + wantHash + "\nSandbox/python-7xk2p         " + wantHash + "\n",
		},
		"standard input, several documents, one of them empty": {
			args: []string{"-f", "-"}, stdin: hashTemplate + "---\n# nothing here\n---\n" + hashSandbox,
			want: "SandboxTemplate/prod/python  " + wantHash + "\nSandbox/python-7xk2p         " + wantHash + "\n",
		},
		"a list":        {args: []string{"-f", "-"}, stdin: list, want: "Sandbox/<unnamed>  v1-44136fa355b3678a\n"},
		"hash only":     {args: []string{"-f", template, "-o", "name"}, want: wantHash + "\n"},
		"YAML":          {args: []string{"-f", template, "-oyaml"}, want: "apiVersion: cli.freshbind.dev/v1alpha1\nitems:\n- hash: " + wantHash + "\n  kind: SandboxTemplate\n  name: python\n  namespace: prod\nkind: TemplateSpecHashList\n"},
		"JSON":          {args: []string{"-f", sandbox, "-o", "json"}, want: "{\n  \"apiVersion\": \"cli.freshbind.dev/v1alpha1\",\n  \"items\": [\n    {\n      \"hash\": \"" + wantHash + "\",\n      \"kind\": \"Sandbox\",\n      \"name\": \"python-7xk2p\"\n    }\n  ],\n  \"kind\": \"TemplateSpecHashList\"\n}\n"},
		"no file":       {wantErr: "error: -f is required: name a file, or - for standard input\n", code: 2},
		"an argument":   {args: []string{template}, wantErr: `error: unexpected argument "` + template + `": name files with -f` + "\n", code: 2},
		"empty name":    {args: []string{"-f", ""}, wantErr: "error: -f: the name of the file is empty\n", code: 2},
		"other output":  {args: []string{"-f", template, "-o", "wide"}, wantErr: `error: -o "wide": accepted are json, yaml, name, jsonpath=, go-template=, custom-columns=` + "\n", code: 2},
		"stdin twice":   {args: []string{"-f", "-", "-f", "-"}, wantErr: "error: -f -: standard input can be read only once\n", code: 2},
		"unknown flag":  {args: []string{"--recursive"}, wantErr: "error: unknown flag: --recursive (see freshbind hash --help)\n", code: 2},
		"missing file":  {args: []string{"-f", filepath.Join(dir, "no")}, wantErr: "error: read " + filepath.Join(dir, "no") + ": open " + filepath.Join(dir, "no") + ": no such file or directory\n", code: 1},
		"directory":     {args: []string{"-f", dir}, wantErr: "error: read " + dir + ": is a directory: name the files in it\n", code: 1},
		"nothing in it": {args: []string{"-f", "-"}, stdin: "# nothing\n", wantErr: "error: standard input: no document found: accepted are SandboxTemplate and Sandbox\n", code: 1},
		"another kind": {
			args: []string{"-f", "-"}, stdin: hashTemplate + "---\nkind: Pod\napiVersion: v1\n",
			wantErr: `error: standard input: document 2: kind "Pod" of apiVersion "v1": ` + acceptedKinds + "\n", code: 1,
		},
		"another group": {
			args: []string{"-f", "-"}, stdin: "kind: Sandbox\napiVersion: agents.kruise.io/v1alpha1\n",
			wantErr: `error: standard input: document 1: kind "Sandbox" of apiVersion "agents.kruise.io/v1alpha1": ` + acceptedKinds + "\n", code: 1,
		},
		"another kind in a list": {
			args: []string{"-f", "-"}, stdin: "kind: List\nitems: [{kind: Pod}]\n",
			wantErr: `error: standard input: document 1, item 1: kind "Pod" of apiVersion "": ` + acceptedKinds + "\n", code: 1,
		},
		"a list without items": {args: []string{"-f", "-"}, stdin: "kind: List\n", wantErr: "error: standard input: document 1: items: required in a List, and must be a list\n", code: 1},
		"an item that is no object": {
			args: []string{"-f", "-"}, stdin: "kind: List\nitems: [5]\n",
			wantErr: "error: standard input: document 1, item 1: must be an object with apiVersion, kind, metadata and spec\n", code: 1,
		},
		"no object":     {args: []string{"-f", "-"}, stdin: "[]\n", wantErr: "error: standard input: document 1: must be an object with apiVersion, kind, metadata and spec\n", code: 1},
		"no spec":       {args: []string{"-f", "-"}, stdin: "kind: Sandbox\napiVersion: agents.x-k8s.io/v1beta1\nmetadata: {name: a}\n", wantErr: `error: standard input: document 1: Sandbox "a": spec: required, and must be an object` + "\n", code: 1},
		"no pod spec":   {args: []string{"-f", "-"}, stdin: "kind: Sandbox\napiVersion: agents.x-k8s.io/v1beta1\nmetadata: {name: a}\nspec: {}\n", wantErr: `error: standard input: document 1: Sandbox "a": spec.podTemplate.spec: required, and must be an object` + "\n", code: 1},
		"a wrong field": {args: []string{"-f", "-"}, stdin: strings.Replace(hashSandbox, `image: "a:v1"`, "image: 5", 1), wantErr: `error: standard input: document 1: Sandbox "python-7xk2p": spec.podTemplate.spec.containers[0].image: must be a string, is an integer` + "\n", code: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			code := Main(append([]string{"hash"}, tc.args...), strings.NewReader(tc.stdin), &out, &errOut)
			if code != tc.code {
				t.Errorf("exit code: got %d, want %d", code, tc.code)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("output (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantErr, errOut.String()); diff != "" {
				t.Errorf("error output (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestHashSaysEachError(t *testing.T) {
	var out, errOut bytes.Buffer
	stdin := "kind: A\n---\n" + hashSandbox + "---\nkind: B\n---\na: 1\na: 2\n"
	if code := Main([]string{"hash", "-f", "-"}, strings.NewReader(strings.TrimSuffix(stdin, "---\na: 1\na: 2\n")), &out, &errOut); code != 1 {
		t.Errorf("exit code: got %d, want 1", code)
	}
	for _, want := range []string{`document 1: kind "A"`, `document 3: kind "B"`} {
		if !strings.Contains(errOut.String(), want) {
			t.Errorf("%q is missing in %s", want, errOut.String())
		}
	}
	if out.Len() > 0 {
		t.Errorf("with an error nothing must be printed, but: %s", out.String())
	}
	errOut.Reset()
	if code := Main([]string{"hash", "-f", "-"}, strings.NewReader(stdin), &out, &errOut); code != 1 || !strings.Contains(errOut.String(), "document 4: is not YAML: ") {
		t.Errorf("a key given twice: exit code %d, %s", code, errOut.String())
	}
}

// The hash of a file is that of what the API server makes of it.
func TestHashAsStored(t *testing.T) {
	const published = `{"properties": {"apiVersion": {}, "kind": {}, "metadata": {}, "spec": {"properties": {
		"networkPolicyManagement": {"default": "Managed"},
		"podTemplate": {"properties": {"spec": {"properties": {"containers": {"items": {"properties": {
			"name": {}, "image": {}, "ports": {"items": {"properties": {"containerPort": {}, "protocol": {"default": "TCP"}}}}
		}}}}}}}
	}}}}`
	var s openAPISchema
	if err := json.Unmarshal([]byte(published), &s); err != nil {
		t.Fatal(err)
	}
	withPort := strings.Replace(hashTemplate, `image: "a:v1"`, `image: "a:v1", ports: [{containerPort: 80}]`, 1)
	for name, tc := range map[string]struct {
		file, same string
		wantErr    string
	}{
		"no default is missing": {file: hashTemplate, same: hashTemplate},
		"a default":             {file: withPort, same: strings.Replace(withPort, "containerPort: 80", "containerPort: 80, protocol: TCP", 1)},
		"a misspelt field":      {file: strings.Replace(hashTemplate, "image:", "imagee:", 1), wantErr: "spec.podTemplate.spec.containers[0].imagee: unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			hash := func(text string, schemas *crdDefaults) (string, error) {
				streams, in, out, _ := genericiooptions.NewTestIOStreams()
				in.WriteString(text)
				o := &hashOptions{streams: streams, render: builtIn.Render, files: []string{"-"}, output: cli.Output{Names: true, Format: cli.Name}, stored: schemas != nil, schemas: schemas}
				err := o.run()
				return out.String(), err
			}
			kind := schema.GroupVersionKind{Group: "extensions.agents.x-k8s.io", Version: "v1beta1", Kind: "SandboxTemplate"}
			got, err := hash(tc.file, &crdDefaults{known: map[schema.GroupVersionKind]*openAPISchema{kind: &s}})
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error is %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want, err := hash(tc.same, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("hash (-want,+got):\n%s", diff)
			}
		})
	}
}
