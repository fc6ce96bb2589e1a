package jsonobject

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	machinery "k8s.io/apimachinery/pkg/util/json"
)

// texts are JSON and what is none, of every kind.
var texts = []string{
	`{}`, ` { } `, `{"a":1}`, `{"a":-1,"b":0,"c":-0}`, `{"a":123456789012345678}`, `{"a":1234567890123456789}`, `{"a":9223372036854775807}`,
	`{"a":9223372036854775808}`, `{"a":-9223372036854775808}`, `{"a":1.5}`, `{"a":1e3}`, `{"a":1E+3}`, `{"a":1.5e-3}`, `{"a":1e400}`, `{"a":0.0}`, `{"a":-0.0}`,
	`{"a":"b"}`, `{"a":""}`, `{"":"b"}`, `{"a":"\"\\\/\b\f\n\r\t"}`, `{"a":"\u003c\u00e9\u4e16"}`, `{"a":"\ud83d\ude00"}`, `{"a":"\ud83d"}`, `{"a":"\ude00\ud83d"}`,
	"{\"a\":\"\u00e9\u4e16\U0001F600\"}", "{\"a\":\"\xff\"}", "{\"a\":\"\xc3\"}", `{"\u0061":1,"a":2}`, `{"a\n":1}`, "{\"a\":\"\x7f\"}",
	`{"a":[]}`, `{"a":[1,"b",null,true,false,{"c":[[]]}]}`, `{"a":{"b":{"c":{}}}}`, `{"a":null,"b":true,"c":false}`, "\t{\r\n\"a\" : [ 1 , 2 ] }\n",
	`{"a":1,"a":{"b":2},"a":{"c":3}}`, `{"metadata":{"managedFields":[{"a":[1]}],"name":"x"},"managedFields":[1]}`,
	`{"kind":"K","metadata":{"managedFields":{"f":{".":{}}}},"spec":{"metadata":{"managedFields":[2]}}}`, `{"metadata":{"managedFields":null}}`,
	`{"metadata":{"name":"x"},"metadata":{"managedFields":[],"uid":"y"}}`, `{"metadata":[{"managedFields":1}]}`,
	`null`, `{`, `}`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{,}`, `{"a" 1}`, `{"a":1 "b":2}`, `{a:1}`, `{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":.5}`, `{"a":1e}`, `{"a":+1}`,
	`{"a":tru}`, `{"a":nul}`, `{"a":truefalse}`, `{"a":[1,]}`, `{"a":[1 2]}`, `{"a":[`, `{"a":[1`, `{"a":"`, `{"a":"\`, `{"a":"\x"}`, `{"a":"\u12"}`, `{"a":"\u12g4"}`, `{"a":"\u+123"}`, "{\"a\":\"\n\"}",
	"{\"a\":\"\\\n\"}", `{"a":1}x`, `{"a":1}{}`, `[]`, `1`, `"a"`, ``, ` `, `{"metadata":{"managedFields":[1,]}}`, `{"metadata":{"managedFields":["\x"]}}`, `{"metadata":{"managedFields":"\x"}}`, `{"spec":{"managedFields":[3]}}`, `{"metadata":{"metadata":{"managedFields":[1]}}}`, `{"metadata":{"managedFields":`,
	strings.Repeat(`{"a":`, 9_999) + `{}` + strings.Repeat(`}`, 9_999), strings.Repeat(`{"a":`, 10_000) + `{}` + strings.Repeat(`}`, 10_000),
	`{"a":` + strings.Repeat(`[`, 9_999) + strings.Repeat(`]`, 9_999) + `}`, `{"a":` + strings.Repeat(`[`, 10_000) + strings.Repeat(`]`, 10_000) + `}`,
	strings.Repeat(`{"a":`, 10_001) + `1` + strings.Repeat(`}`, 10_001),
}

// unmanaged is what the API machinery decodes, less the managed fields.
func unmanaged(text []byte) (object map[string]any, err error) {
	if err = machinery.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	return object, nil
}

// agrees wants of a text what the API machinery says of it.
func agrees(t *testing.T, text []byte) {
	t.Helper()
	var want map[string]any
	wantErr := machinery.Unmarshal(text, &want)
	got, err := Decode(text)
	// Lists in lists are too much for cmp.
	if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(want, got) {
		t.Errorf("Decode(%.200q) = %v, %v, want %v, %v", text, got, err, want, wantErr)
	}
	got, ok := Read(text)
	if !ok {
		return
	}
	want, wantErr = unmanaged(text)
	if wantErr != nil || !reflect.DeepEqual(want, got) {
		t.Errorf("Read(%.200q) = %v, want %v, %v", text, got, want, wantErr)
	}
}

func TestDecodeAsTheAPIMachinery(t *testing.T) {
	for _, text := range texts {
		agrees(t, []byte(text))
	}
}

// Cut off or spoiled anywhere, a text is what the API machinery takes it for.
func TestATextThatIsNotWhole(t *testing.T) {
	const text = `{"kind":"Pod","metadata":{"name":"a\n","managedFields":[{"x":{"f:a":{}}}]},"spec":{"n":[1,-2.5e3,true,null],"s":"\u00e9"}}`
	for i := range len(text) {
		agrees(t, []byte(text[:i]))
		agrees(t, []byte(text[:i]+"!"+text[i+1:]))
		agrees(t, []byte(text[:i]+`"`+text[i:]))
		agrees(t, []byte(text[:i]+"\x00"+text[i:]))
	}
}

// What API servers write is understood in one pass.
func TestWhatIsUnderstood(t *testing.T) {
	for text, want := range map[string]bool{
		`{"kind":"Pod","metadata":{"labels":{"a":"b\u003c\n"}},"spec":{"containers":[{"args":[],"n":1,"f":0.5,"ok":true,"no":null}]}}`: true,
		`{"a":"` + "\u00e9" + `"}`: true, `{"a":"\ud83d\ude00"}`: true, `{"a":1234567890123456789}`: true, `{"a":1,"a":2}`: true, `null`: false, `{"a":`: false,
	} {
		if _, got := Read([]byte(text)); got != want {
			t.Errorf("Read(%s) = %t, want %t", text, got, want)
		}
	}
}

// An object shares no memory with the text: the text can be large, and somebody may keep
// what is small.
func TestAnObjectIsOnItsOwn(t *testing.T) {
	text := []byte(`{"other key":"value"}`)
	object, ok := Read(text)
	clear(text)
	if diff := cmp.Diff(map[string]any{"other key": "value"}, object); diff != "" || !ok {
		t.Errorf("Read() = %t (-want,+got):\n%s", ok, diff)
	}
}

func FuzzDecode(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { agrees(t, text) })
}

func benchmarkText(b *testing.B) []byte {
	b.Helper()
	fields := map[string]any{}
	for _, key := range []string{"f:metadata", "f:spec", "f:status", "f:podTemplate"} {
		fields[key] = map[string]any{".": map[string]any{}, "f:name": map[string]any{}, "f:image": map[string]any{}, "f:env": map[string]any{".": map[string]any{}}}
	}
	container := map[string]any{
		"name": "main", "image": "registry.example.com/sandbox:v1", "command": []any{"/bin/run", "--port=8080"}, "env": []any{map[string]any{"name": "A", "value": "b"}},
		"resources": map[string]any{"requests": map[string]any{"cpu": "100m", "memory": "256Mi"}}, "ports": []any{map[string]any{"containerPort": 8080, "protocol": "TCP"}},
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox",
		"metadata": map[string]any{"name": "python-7xk2p", "namespace": "prod", "uid": "b7f4f0c4-8b1a-4c56-9e0f-0d5fb4a3a9f7", "resourceVersion": "123456", "managedFields": []any{
			map[string]any{"manager": "a", "operation": "Update", "fieldsV1": fields}, map[string]any{"manager": "b", "operation": "Update", "fieldsV1": fields}}},
		"spec":   map[string]any{"podTemplate": map[string]any{"spec": map[string]any{"containers": []any{container}, "dnsPolicy": "None", "automountServiceAccountToken": false}}},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "DependenciesReady", "message": "Pod is Ready", "observedGeneration": 1}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	return text
}

func BenchmarkDecode(b *testing.B) {
	text := benchmarkText(b)
	for name, decode := range map[string]func() error{
		"machinery": func() error { var object map[string]any; return machinery.Unmarshal(text, &object) },
		"decode":    func() error { _, err := Decode(text); return err },
		"read":      func() error { Read(text); return nil },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if err := decode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
