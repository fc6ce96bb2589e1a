package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/webhooks"
)

// What stands in the code's output for what the template fills in.
const (
	selfMark  = "XX-self"
	poolsMark = "XX-pools"
	// kruisePoolsMark is poolsMark of OpenKruise Agents.
	kruisePoolsMark = "XX-kruise-pools"
	openMark        = "xx-open"
	labelMark       = "XX-labels"
	caMark          = "XX-ca"
	// selectorMark is followed by what else narrows the selector down.
	selectorMark = "XX-selector"
	policyMark   = "XX-policy"
	// floorSuffix ends the names of what is there for each floor, between floorStart
	// and the end.
	floorSuffix  = "-by-floor-0"
	floorStart   = "{{- range $i, $floor := $floors }}\n---\n"
	openPathMark = "XX-openpath"
)

const (
	head = `{{- /* Made from package webhooks by "make chart"; not to be edited. */ -}}
{{- $ca := include "freshbind.caBundle" . -}}
{{- $mutating := include "freshbind.mutatingPolicies" . -}}
{{- $floors := list -}}
{{- range .Values.config.floors -}}
{{- if eq (default "" .minimumEnforcement) "enforce" -}}
{{- $floors = append $floors . -}}
{{- end -}}
{{- end -}}
`
	end = "{{- end }}\n"
)

// admissionTemplate is the template of webhook configurations and policies.
func admissionTemplate() ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(head)
	if err := writePlatform(&out, agentsandbox.Admission(), poolsMark); err != nil {
		return nil, err
	}
	out.WriteString("{{- if .Values.config.platforms.kruise }}\n")
	if err := writePlatform(&out, kruise.Admission(), kruisePoolsMark); err != nil {
		return nil, err
	}
	out.WriteString(end)
	return fill(out.String())
}

// writePlatform writes what the API server is told of one platform, whose pool controllers
// are filled in for a mark.
func writePlatform(out *bytes.Buffer, a platform.Admission, pools string) error {
	scope := webhooks.Scope{
		Open: []string{openMark}, PoolControllers: []string{pools}, Restamp: true, Self: selfMark,
		Enforced: []metav1.LabelSelector{{}},
	}
	endpoint := webhooks.Endpoint{ServiceNamespace: "{{ $.Release.Namespace }}", ServiceName: `{{ include "freshbind.fullname" $ }}`, ServicePort: 1}
	mutating, validating := webhooks.Configurations(a, endpoint, scope)
	for _, configuration := range []client.Object{mutating, validating} {
		if err := writeConfiguration(out, configuration); err != nil {
			return err
		}
	}
	for _, configuration := range webhooks.FloorConfigurations(a, endpoint, scope) {
		if err := writeConfiguration(out, configuration); err != nil {
			return err
		}
		out.WriteString(end)
	}
	if err := writePolicies(out, webhooks.NewPolicies(a, scope)); err != nil {
		return err
	}
	return writePolicies(out, webhooks.NewOwnPolicies(a, selfMark, kruise.Admission()))
}

func writeConfiguration(out *bytes.Buffer, configuration client.Object) error {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(configuration)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", configuration.GetName(), err)
	}
	hooks, ok := object["webhooks"].([]any)
	if !ok {
		return fmt.Errorf("%T has no webhooks", configuration)
	}
	delete(object, "webhooks")
	name, start := ofFloor(configuration.GetName())
	object["metadata"] = map[string]any{"name": name, "labels": labelMark, "annotations": caMark}
	if err := writeYAML(out, start, object); err != nil {
		return err
	}
	out.WriteString("webhooks:\n")
	for _, item := range hooks {
		hook, ok := item.(map[string]any)
		if !ok {
			return errors.New("a webhook is no object")
		}
		if err := writeHook(out, hook, start == floorStart); err != nil {
			return err
		}
	}
	return nil
}

// ofFloor returns the name in the template of what has this name, and what it starts with.
func ofFloor(name string) (inTemplate, start string) {
	prefix, is := strings.CutSuffix(name, floorSuffix)
	if !is {
		return name, "---\n"
	}
	return prefix + strings.TrimSuffix(floorSuffix, "0") + "{{ $i }}", floorStart
}

// writeHook writes one webhook. One that the values do not want is there for no
// namespace: whoever injects the CA owns a field of it, so that a server-side
// apply without it would leave a rest that is not valid.
func writeHook(out *bytes.Buffer, hook map[string]any, floor bool) error {
	name := fmt.Sprint(hook["name"])
	selector := selectorMark
	clientConfig, _ := hook["clientConfig"].(map[string]any)
	service, _ := clientConfig["service"].(map[string]any)
	kind, audited := strings.CutPrefix(name, webhooks.AuditPrefix)
	judged := slices.ContainsFunc(webhooks.Judged(), func(h webhooks.Hook) bool { return h.Name == kind })
	if judged {
		service["path"] = fmt.Sprint(service["path"]) + openPathMark + valueOf(name)
	}
	if judged && !audited {
		hook["failurePolicy"] = policyMark + valueOf(name)
	}
	switch {
	case audited:
		selector += "-audited-" + valueOf(name)
	case floor:
		selector += "-floored-" + valueOf(name)
	case judged:
		selector += "-closed-" + valueOf(name)
	case strings.HasPrefix(name, webhooks.OpenPrefix):
		selector += "-opened-" + valueOf(name)
	case name == webhooks.RestampName:
		selector += "-restamp"
	}
	hook["namespaceSelector"] = selector
	clientConfig["caBundle"] = caMark
	return writeYAML(out, "", []any{hook})
}

// valueOf is the value that holds a judged hook's failure policy.
func valueOf(hook string) string {
	if strings.HasSuffix(hook, webhooks.ColdStartHook.Name) {
		return "coldStart"
	}
	return "bind"
}

func writePolicies(out *bytes.Buffer, policies webhooks.Policies) error {
	for _, obj := range policies.Objects() {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return fmt.Errorf("encoding %s: %w", obj.GetName(), err)
		}
		delete(object, "status")
		name, start := ofFloor(obj.GetName())
		after := ""
		if start == floorStart {
			after = end
		}
		object["metadata"] = map[string]any{"name": name, "labels": labelMark}
		if bound, ok, _ := unstructured.NestedMap(object, "spec", "matchResources"); ok {
			bound["namespaceSelector"] = selectorOf(obj.GetName())
			if err := unstructured.SetNestedMap(object, bound, "spec", "matchResources"); err != nil {
				return fmt.Errorf("selecting namespaces for %s: %w", obj.GetName(), err)
			}
		}
		switch obj.(type) {
		case *admissionregistrationv1.MutatingAdmissionPolicy, *admissionregistrationv1.MutatingAdmissionPolicyBinding:
			start, after = "{{- if $mutating }}\n"+start, after+end
		}
		if err := writeYAML(out, start, object); err != nil {
			return err
		}
		out.WriteString(after)
	}
	return nil
}

// selectorOf marks which namespaces a policy is bound in.
func selectorOf(binding string) string {
	switch {
	case strings.HasSuffix(binding, floorSuffix):
		return selectorMark + "-floor"
	case strings.HasSuffix(binding, "-by-pool"), strings.HasPrefix(binding, webhooks.PoolsPolicy):
		return selectorMark + "-bypool"
	}
	return selectorMark + "-policy"
}

func writeYAML(out *bytes.Buffer, before string, object any) error {
	text, err := yaml.Marshal(object)
	if err != nil {
		return fmt.Errorf("writing YAML: %w", err)
	}
	out.WriteString(before)
	out.Write(text)
	return nil
}

// fill puts the template's actions in the place of the marks.
func fill(text string) ([]byte, error) {
	selector := func(more string) string {
		return "\n    " + `{{- include "freshbind.namespaceSelector" (dict "root" $` + more + `) | nindent 4 }}`
	}
	const policy = `eq $.Values.webhooks.failurePolicies.`
	closed := func(value string) string {
		return ` "notIn" (ternary (list) $.Values.webhooks.openNamespaces (` + policy + value + ` "Ignore"))`
	}
	const (
		enforced = ` "says" "enforce"`
		audited  = ` "says" "nothing" "besides" $floors`
		floored  = ` "says" "nothing" "besides" (slice $floors 0 $i) "floor" $floor.namespaceSelector`
	)
	open := func(value string) string {
		return `and $.Values.webhooks.openNamespaces (` + policy + value + ` "Fail")`
	}
	either := func(condition, selector string) string {
		return "\n    {{- if " + condition + " }}" + selector + "\n    {{- else }}\n    {{- include \"freshbind.nowhere\" $ | nindent 4 }}\n    {{- end }}\n"
	}
	users := func(value string) string {
		return `[{{ range $i, $user := $.Values.webhooks.` + value + ` }}{{ if $i }}, {{ end }}{{ quote $user }}{{ end }}]`
	}
	text = strings.NewReplacer(
		"  annotations: "+caMark+"\n", "  {{- with include \"freshbind.injectCA\" $ }}\n  annotations:\n    {{- . | nindent 4 }}\n  {{- end }}\n",
		"    caBundle: "+caMark+"\n", "    {{- with $ca }}\n    caBundle: {{ . }}\n    {{- end }}\n",
		" "+labelMark, "\n    {{- include \"freshbind.labels\" $ | nindent 4 }}",
		"port: 1\n", "port: {{ $.Values.service.port }}\n",
		selfMark, `{{ include "freshbind.user" $ }}`,
		`["`+poolsMark+`"]`, users("poolControllerUsers"),
		`["`+kruisePoolsMark+`"]`, users("kruiseControllerUsers"),
		" "+selectorMark+"-restamp\n", either("not $mutating", selector("")),
		" "+selectorMark+"-closed-bind\n", selector(enforced+closed("bind"))+"\n",
		" "+selectorMark+"-closed-coldStart\n", selector(enforced+closed("coldStart"))+"\n",
		" "+selectorMark+"-audited-bind\n", selector(audited+closed("bind"))+"\n",
		" "+selectorMark+"-audited-coldStart\n", selector(audited+closed("coldStart"))+"\n",
		" "+selectorMark+"-floored-bind\n", selector(floored+closed("bind"))+"\n",
		" "+selectorMark+"-floored-coldStart\n", selector(floored+closed("coldStart"))+"\n",
		" "+selectorMark+"-opened-bind\n", either(open("bind"), selector(` "in" $.Values.webhooks.openNamespaces`)),
		" "+selectorMark+"-opened-coldStart\n", either(open("coldStart"), selector(` "in" $.Values.webhooks.openNamespaces`)),
		" "+selectorMark+"-policy\n", "\n      {{- include \"freshbind.namespaceSelector\" (dict \"root\" $ \"says\" \"enforce\") | nindent 6 }}\n",
		" "+selectorMark+"-bypool\n", "\n      {{- include \"freshbind.namespaceSelector\" (dict \"root\" $) | nindent 6 }}\n",
		" "+selectorMark+"-floor\n", "\n      {{- include \"freshbind.namespaceSelector\" (dict \"root\" $ \"floor\" $floor.namespaceSelector) | nindent 6 }}\n",
		" "+selectorMark+"\n", selector("")+"\n",
		policyMark+"bind", "{{ $.Values.webhooks.failurePolicies.bind }}",
		policyMark+"coldStart", "{{ $.Values.webhooks.failurePolicies.coldStart }}",
		openPathMark+"bind", `{{ if `+policy+`bind "Ignore" }}/open{{ end }}`,
		openPathMark+"coldStart", `{{ if `+policy+`coldStart "Ignore" }}/open{{ end }}`,
	).Replace(text)
	if i := strings.Index(strings.ToLower(text), "xx-"); i >= 0 {
		return nil, fmt.Errorf("a mark is left in the template: %.80s", text[i:])
	}
	return []byte(text), nil
}
