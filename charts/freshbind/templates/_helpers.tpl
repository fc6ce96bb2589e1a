{{- define "freshbind.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "freshbind.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "freshbind.fullname" .) -}}
{{- end -}}

{{- /* The user that the manager is to the API server. */ -}}
{{- define "freshbind.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "freshbind.serviceAccount" . }}
{{- end -}}

{{- define "freshbind.selectorLabels" -}}
app.kubernetes.io/name: freshbind
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "freshbind.labels" -}}
{{ include "freshbind.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "freshbind.image" -}}
{{- with .Values.image -}}
{{- with $.Values.global.imageRegistry | default .registry }}{{ . }}/{{ end -}}
{{- if .digest -}}
{{- printf "%s@%s" .repository .digest -}}
{{- else -}}
{{- printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* What a Pod may call, for a NetworkPolicy. Takes root, and ports of what else it calls. */ -}}
{{- define "freshbind.egress" -}}
{{- $policy := .root.Values.networkPolicy -}}
- ports:
  - {port: 53, protocol: UDP}
  - {port: 53, protocol: TCP}
- ports:
  {{- range $policy.egress.apiServerPorts }}
  - {port: {{ . }}, protocol: TCP}
  {{- end }}
  {{- with $policy.apiServerCIDRs }}
  to:
  {{- range . }}
  - ipBlock: {cidr: {{ . | quote }}}
  {{- end }}
  {{- end }}
{{- with .ports }}
- ports:
  {{- range . }}
  - {port: {{ . }}, protocol: TCP}
  {{- end }}
{{- end }}
{{- with $policy.egress.rules }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "freshbind.certificateSecret" -}}
{{- if eq .Values.certificates.source "Secret" -}}
{{- required "certificates.secret.name: the Secret with tls.crt and tls.key, needed with certificates.source=Secret" .Values.certificates.secret.name -}}
{{- else if eq .Values.certificates.source "Generated" -}}
{{- include "freshbind.fullname" . }}-generated
{{- else -}}
{{- include "freshbind.fullname" . }}-serving
{{- end -}}
{{- end -}}

{{- /* The Secret with the CA that whoever asks Freshbind trusts; with a Secret of one's own it is in the ConfigMap. */ -}}
{{- define "freshbind.trustSecret" -}}
{{- ternary .Values.certificates.certManager.trustSecret "" (eq .Values.certificates.source "CertManager") | default (include "freshbind.certificateSecret" .) -}}
{{- end -}}

{{- /* What cert-manager's injector has to know; empty without it. */ -}}
{{- define "freshbind.injectCA" -}}
{{- if eq .Values.certificates.source "CertManager" -}}
{{- with .Values.certificates.certManager.trustSecret -}}
cert-manager.io/inject-ca-from-secret: {{ $.Release.Namespace }}/{{ . }}
{{- else -}}
cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/{{ include "freshbind.fullname" . }}-serving
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* What the API server trusts, base64; empty where it is injected. */ -}}
{{- define "freshbind.caBundle" -}}
{{- if eq .Values.certificates.source "Secret" -}}
{{- required "certificates.secret.caBundle: the CAs that the API server is to trust, PEM, needed with certificates.source=Secret" .Values.certificates.secret.caBundle | b64enc -}}
{{- end -}}
{{- end -}}

{{- /* Whether the API server applies mutating policies itself; empty for no. */ -}}
{{- define "freshbind.mutatingPolicies" -}}
{{- $served := .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" -}}
{{- if or (eq .Values.webhooks.mutatingPolicies "Always") (and $served (eq .Values.webhooks.mutatingPolicies "Auto")) -}}
true
{{- end -}}
{{- end -}}

{{- /* Namespaces in scope, as the code's Scope has them. Takes root; says: "enforce" for
those that are enforced by their label or by default, "nothing" for the others;
besides: floors whose namespaces are left out, as far as a selector can tell; floor:
a selector to narrow them down by; in or notIn: further lists. */ -}}
{{- define "freshbind.namespaceSelector" -}}
{{- $byDefault := eq .root.Values.config.defaults.enforcement "enforce" -}}
{{- with .floor }}{{ with .matchLabels -}}
matchLabels:
  {{- toYaml . | nindent 2 }}
{{ end }}{{ end -}}
{{- if and (eq (default "" .says) "enforce") (not $byDefault) -}}
matchLabels:
  freshbind.dev/enforcement: enforce
{{ end -}}
matchExpressions:
{{- include "freshbind.onlyNamespaces" .root }}
- key: kubernetes.io/metadata.name
  operator: NotIn
  values:
  {{- concat (list "kube-system" .root.Release.Namespace) .root.Values.webhooks.exemptNamespaces | uniq | sortAlpha | toYaml | nindent 2 }}
{{- if and (eq (default "" .says) "enforce") $byDefault }}
- key: freshbind.dev/enforcement
  operator: NotIn
  values: [audit]
{{- end }}
{{- if eq (default "" .says) "nothing" }}
- key: freshbind.dev/enforcement
  operator: {{ ternary "In" "NotIn" $byDefault }}
  values: [{{ ternary "audit" "enforce" $byDefault }}]
{{- end }}
{{- range .besides }}
{{- include "freshbind.outside" .namespaceSelector }}
{{- end }}
{{- with .floor }}{{ with .matchExpressions }}
{{ toYaml . }}
{{- end }}{{ end }}
{{- with .in }}
- key: kubernetes.io/metadata.name
  operator: In
  values:
  {{- sortAlpha . | toYaml | nindent 2 }}
{{- end }}
{{- with .notIn }}
- key: kubernetes.io/metadata.name
  operator: NotIn
  values:
  {{- sortAlpha . | toYaml | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* What a selector does not select; nothing where it has several requirements: the
opposite of "a and b" is an "or". */ -}}
{{- define "freshbind.outside" -}}
{{- $labels := .matchLabels | default dict -}}
{{- $expressions := .matchExpressions | default list -}}
{{- $opposite := dict "In" "NotIn" "NotIn" "In" "Exists" "DoesNotExist" "DoesNotExist" "Exists" -}}
{{- $requirements := add (len $labels) (len $expressions) -}}
{{- if eq $requirements 0 }}
{{ include "freshbind.nowhere" . | trimPrefix "matchExpressions:\n" }}
{{- else if eq $requirements 1 }}
{{- range $key, $value := $labels }}
- key: {{ $key | quote }}
  operator: NotIn
  values: [{{ $value | quote }}]
{{- end }}
{{- range $expressions }}
- key: {{ .key | quote }}
  operator: {{ get $opposite .operator }}
  {{- with .values }}
  values: {{ toJson . }}
  {{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* No namespace: all have this label. */ -}}
{{- define "freshbind.nowhere" -}}
matchExpressions:
- key: kubernetes.io/metadata.name
  operator: DoesNotExist
{{- end -}}

{{- define "freshbind.onlyNamespaces" -}}
{{- with .Values.namespaces }}
- key: kubernetes.io/metadata.name
  operator: In
  values:
  {{- sortAlpha . | toYaml | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "freshbind.config" -}}
apiVersion: config.freshbind.dev/v1alpha1
kind: FreshbindConfiguration
{{ toYaml (omit .Values.config "selfTest" "platforms") }}
{{- if .Values.config.platforms.kruise }}
platforms:
  kruise: true
{{- end }}
namespaces: {{ toJson .Values.namespaces }}
selfTest:
  enabled: {{ .Values.config.selfTest.enabled }}
  interval: {{ .Values.config.selfTest.interval }}
  {{- with .Values.config.selfTest.namespace }}
  namespace: {{ . | quote }}
  {{- end }}
scheduling:
  mode: {{ .Values.scheduling.mode }}
  schedulerName: {{ .Values.scheduling.schedulerName }}
  weights: {{ toJson .Values.scheduling.weights }}
leaderElection:
  enabled: true
  namespace: {{ .Release.Namespace | quote }}
  deployment: {{ include "freshbind.fullname" . }}
webhook:
  bindAddress: ":{{ .Values.ports.webhook }}"
  certificate:
    secretName: {{ include "freshbind.certificateSecret" . }}
    secretNamespace: {{ .Release.Namespace | quote }}
    {{- if eq .Values.certificates.source "Generated" }}
    generateFor: {{ include "freshbind.fullname" . }}
    {{- end }}
  {{- if .Values.webhooks.clients.caBundle }}
  clients:
    caFile: /etc/freshbind/client-ca.crt
    names: {{ toJson .Values.webhooks.clients.names }}
  {{- end }}
metrics:
  bindAddress: ":{{ .Values.ports.metrics }}"
  secure: {{ .Values.metrics.secure }}
health:
  bindAddress: ":{{ .Values.ports.health }}"
{{- end -}}

{{- /* The second scheduler's image; required with it. */ -}}
{{- define "freshbind.kubeScheduler" -}}
{{- required "scheduling.kubeSchedulerImage: the image of kube-scheduler in your cluster's version, needed with scheduling.mode=SecondScheduler" .Values.scheduling.kubeSchedulerImage -}}
{{- end -}}

{{- /* What "freshbind scheduler-config --second-scheduler" prints. */ -}}
{{- define "freshbind.secondScheduler" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- urlPrefix: https://{{ include "freshbind.fullname" . }}.{{ .Release.Namespace }}.svc:{{ .Values.service.port }}/scheduler
  filterVerb: filter
  preemptVerb: preempt
  prioritizeVerb: prioritize
  weight: 10
  enableHTTPS: true
  tlsConfig:
    caFile: /etc/freshbind/ca.crt
    serverName: {{ include "freshbind.fullname" . }}.{{ .Release.Namespace }}.svc
  httpTimeout: 1s
  nodeCacheCapable: true
  # While Freshbind is away members are scheduled without it.
  ignorable: true
leaderElection:
  leaderElect: true
  resourceName: {{ .Values.scheduling.schedulerName }}
  resourceNamespace: {{ .Release.Namespace }}
profiles:
- schedulerName: {{ .Values.scheduling.schedulerName }}
{{- end -}}

{{- /* Names of webhook configurations. */ -}}
{{- define "freshbind.configurationNames" -}}
freshbind
{{- range $i, $floor := .Values.config.floors }}, freshbind-by-floor-{{ $i }}{{ end }}
{{- if .Values.config.platforms.kruise }}, freshbind-kruise
{{- range $i, $floor := .Values.config.floors }}, freshbind-kruise-by-floor-{{ $i }}{{ end }}
{{- end }}
{{- end -}}

{{- /* Names of policies and of their bindings. */ -}}
{{- define "freshbind.policyNames" -}}
{{- $names := list -}}
{{- range $name := .names -}}
{{- $names = concat $names (list $name (printf "%s-by-pool" $name)) -}}
{{- range $i, $floor := $.root.Values.config.floors -}}
{{- $names = append $names (printf "%s-by-floor-%d" $name $i) -}}
{{- end -}}
{{- end -}}
{{- join ", " $names -}}
{{- end -}}

{{- /* Names of the policies for members and pools, all of them validating. */ -}}
{{- define "freshbind.memberPolicies" -}}
{{- $names := list "freshbind-stamp" "freshbind-born" "freshbind-used" "freshbind-owners" -}}
{{- if .Values.config.platforms.kruise -}}
{{- $names = concat $names (list "freshbind-stamp-kruise" "freshbind-born-kruise" "freshbind-used-kruise") -}}
{{- end -}}
{{- include "freshbind.policyNames" (dict "root" . "names" $names) -}}
, freshbind-pools
{{- if .Values.config.platforms.kruise }}, freshbind-pools-kruise{{ end }}
{{- end -}}

{{- /* Names of the policies, and of their bindings, that hold Freshbind itself: no role of
the manager's has them. */ -}}
{{- define "freshbind.ownPolicyNames" -}}
freshbind-own-writes, freshbind-own-status, freshbind-own-members, freshbind-own-pods, freshbind-own-revisions
{{- if .Values.config.platforms.kruise }}, freshbind-own-writes-kruise, freshbind-own-members-kruise{{ end }}
{{- end -}}

{{/* Nine tenths of the memory limit: from there on garbage is collected rather than kept. Nothing for a limit in another unit. */}}
{{- define "freshbind.memoryTarget" -}}
{{- $limit := ((.Values.resources | default dict).limits | default dict).memory | default "" | toString -}}
{{- if regexMatch "^[0-9]+Mi$" $limit -}}
{{ div (mul 9 (trimSuffix "Mi" $limit | int64)) 10 }}MiB
{{- else if regexMatch "^[0-9]+Gi$" $limit -}}
{{ div (mul 9216 (trimSuffix "Gi" $limit | int64)) 10 }}MiB
{{- end -}}
{{- end -}}
