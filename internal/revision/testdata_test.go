package revision

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// fromYAML reads the spec of a template.
func fromYAML(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("test data is not YAML: %v", err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatalf("test data is not an object: %v", err)
	}
	return out
}

func mustSpec(t testing.TB, text string) Blueprint {
	t.Helper()
	b, err := FromSpec(fromYAML(t, text))
	if err != nil {
		t.Fatalf("FromSpec: %v", err)
	}
	return b
}

func mustPod(t testing.TB, text string) Blueprint {
	t.Helper()
	b, err := FromPodSpec(fromYAML(t, text))
	if err != nil {
		t.Fatalf("FromPodSpec: %v", err)
	}
	return b
}

func mustPaths(t testing.TB, paths ...string) PathSet {
	t.Helper()
	set, err := ParsePaths(paths...)
	if err != nil {
		t.Fatalf("ParsePaths: %v", err)
	}
	return set
}

// threeContainers is about as large as templates get in practice.
const threeContainers = `
podTemplate:
  metadata:
    labels: {app: python}
  spec:
    automountServiceAccountToken: false
    dnsPolicy: None
    dnsConfig:
      nameservers: [8.8.8.8, 1.1.1.1]
    runtimeClassName: gvisor
    securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
    initContainers:
    - name: setup
      image: setup:v1
      command: [sh, -c, "cp -r /seed/. /work"]
      volumeMounts:
      - {name: work, mountPath: /work}
    containers:
    - name: python
      image: sandbox:v1
      command: [python3, -m, server]
      ports:
      - {name: http, containerPort: 8888, protocol: TCP}
      env:
      - {name: HTTP_PROXY, value: "http://proxy:3128"}
      - {name: TOKEN, value: hunter2}
      - name: POD_IP
        valueFrom: {fieldRef: {fieldPath: status.podIP}}
      resources:
        requests: {cpu: 250m, memory: 512Mi, ephemeral-storage: 1Gi}
        limits: {cpu: "1", memory: 1Gi}
      readinessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 1
      volumeMounts:
      - {name: work, mountPath: /work}
      - {name: cache, mountPath: /cache}
    - name: sidecar
      image: sidecar:v3
      args: [--listen=:9000]
      resources:
        limits: {cpu: 100m, memory: 64Mi}
      volumeMounts:
      - {name: cache, mountPath: /cache, readOnly: true}
    tolerations:
    - {key: sandbox, operator: Exists, effect: NoSchedule}
    volumes:
    - name: work
      emptyDir: {}
    - name: cache
      emptyDir: {sizeLimit: 2Gi, medium: Memory}
volumeClaimTemplates:
- metadata: {name: data}
  spec:
    accessModes: [ReadWriteOnce]
    resources: {requests: {storage: 10Gi}}
service: true
`
