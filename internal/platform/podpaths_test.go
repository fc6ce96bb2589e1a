package platform

import (
	"testing"

	"github.com/freshbind/freshbind/internal/revision"
)

// What the API server writes into a Pod is no difference, and another value there is one.
// TestWhatTheAPIServerAddsIsNoDifference asks a real one.
func TestDefaultsOfPods(t *testing.T) {
	type object = map[string]any
	type list = []any
	in := func(spec, fields object) object {
		all := object{"name": "c", "image": "i"}
		for key, value := range fields {
			all[key] = value
		}
		out := object{"containers": list{all}}
		for key, value := range spec {
			out[key] = value
		}
		return out
	}
	container := func(fields object) object { return in(nil, fields) }
	volume := func(kind string, source object) object {
		return in(object{"volumes": list{object{"name": "v", kind: source}}}, nil)
	}
	labelled := func(expressions ...any) object {
		selector := object{"matchLabels": object{"a": "b"}}
		if len(expressions) > 0 {
			selector["matchExpressions"] = expressions
		}
		return in(object{"topologySpreadConstraints": list{object{"topologyKey": "zone", "matchLabelKeys": list{"app"}, "labelSelector": selector}}}, nil)
	}
	env := func(file object) object {
		file["key"] = "k"
		return container(object{"env": list{object{"name": "A", "valueFrom": object{"fileKeyRef": file}}}})
	}
	for name, tc := range map[string]struct{ asked, added, other object }{
		"protocol of a port": {
			container(object{"ports": list{object{"containerPort": int64(80)}}}), container(object{"ports": list{object{"containerPort": int64(80), "protocol": "TCP"}}}),
			container(object{"ports": list{object{"containerPort": int64(80), "protocol": "UDP"}}}),
		},
		"service of a probe": {
			container(object{"livenessProbe": object{"grpc": object{"port": int64(80)}}}), container(object{"livenessProbe": object{"grpc": object{"port": int64(80), "service": ""}}}),
			container(object{"livenessProbe": object{"grpc": object{"port": int64(80), "service": "other"}}}),
		},
		"file with variables": {env(object{}), env(object{"optional": false}), env(object{"optional": true})},
		"type of a path of the node": {
			volume("hostPath", object{"path": "/a"}), volume("hostPath", object{"path": "/a", "type": ""}), volume("hostPath", object{"path": "/a", "type": "File"}),
		},
		"interface of iSCSI": {volume("iscsi", object{"iqn": "a"}), volume("iscsi", object{"iqn": "a", "iscsiInterface": "default"}), volume("iscsi", object{"iqn": "a", "iscsiInterface": "b"})},
		"RBD": {
			volume("rbd", object{"image": "a"}), volume("rbd", object{"image": "a", "pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}),
			volume("rbd", object{"image": "a", "user": "root"}),
		},
		"disk of Azure": {
			volume("azureDisk", object{"diskName": "a"}), volume("azureDisk", object{"diskName": "a", "cachingMode": "ReadWrite", "fsType": "ext4", "kind": "Shared", "readOnly": false}),
			volume("azureDisk", object{"diskName": "a", "readOnly": true}),
		},
		"ScaleIO": {
			volume("scaleIO", object{"system": "a"}), volume("scaleIO", object{"system": "a", "storageMode": "ThinProvisioned", "fsType": "xfs"}),
			volume("scaleIO", object{"system": "a", "fsType": "ext4"}),
		},
		"images that are always pulled": {
			container(object{"imagePullPolicy": "IfNotPresent"}), container(object{"imagePullPolicy": "Always"}), container(object{"imagePullPolicy": "Never"}),
		},
		"init containers that are always pulled": {
			in(object{"initContainers": list{object{"name": "i", "imagePullPolicy": "Never"}}}, nil), in(object{"initContainers": list{object{"name": "i", "imagePullPolicy": "Always"}}}, nil),
			in(object{"initContainers": list{object{"name": "i", "imagePullPolicy": "IfNotPresent"}}}, nil),
		},
		"volumes that are always pulled": {
			volume("image", object{"pullPolicy": "Never"}), volume("image", object{"pullPolicy": "Always"}), volume("image", object{"pullPolicy": "IfNotPresent"}),
		},
		"a policy of its tag": {container(object{}), container(object{"imagePullPolicy": "Always"}), container(object{"imagePullPolicy": "Never"})},
		"keys of its labels": {
			labelled(), labelled(object{"key": "app", "operator": "In", "values": list{"x"}}), labelled(object{"key": "other", "operator": "In", "values": list{"x"}}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			differences := func(spec object) []revision.Difference {
				pod := makePod("m", v2, set(spec, "spec"))
				asked, err := ReadPod(makePod("m", v2, set(tc.asked, "spec")))
				if err != nil {
					t.Fatal(err)
				}
				runs, err := ReadPod(pod)
				if err != nil {
					t.Fatal(err)
				}
				allowed, err := PodInjections(pod, revision.PathSet{})
				if err != nil {
					t.Fatal(err)
				}
				return revision.Compare(asked.Content, runs.Content, allowed)
			}
			if diff := differences(tc.added); len(diff) > 0 {
				t.Errorf("what the API server adds differs: %v", diff)
			}
			if len(differences(tc.other)) == 0 {
				t.Error("another value does not differ")
			}
		})
	}
}
