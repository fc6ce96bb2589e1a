// Package revision turns the part of a template, a sandbox or a pod whose change makes a sandbox stale into one canonical value, names it
// by a hash and compares two of them. It decides on plain values only: it reads nothing and imports no client.
//
// # Canonical form
//
// Two objects have the same [Blueprint] exactly when the Kubernetes API types call them equal (decoded, then compared as
// k8s.io/apimachinery/pkg/api/equality does), except that fields these types do not know are kept and count:
//
//   - null is absence. As an element of a typed list or map it is what decoding makes of it: the zero value.
//   - A field that is no pointer in Go is dropped when it is zero: false, 0, "", an empty list or map, a struct with nothing in it
//     (resources, metadata). A pointer keeps its zero value: emptyDir: {} and no emptyDir differ.
//   - Quantities count by value (1000m is 1, 1Gi is 1073741824), times by instant, ports as integer or string. Only where the type says
//     so: the value of an environment variable is a string whatever it looks like.
//   - Keys are sorted by their UTF-8 bytes. The order of lists is kept and counts in the hash.
//   - What the types do not know is kept as it is, less nulls in maps.
//
// The hash is "v1-" and the first 16 hex digits of the SHA-256 of the canonical JSON. Hashes with another prefix are never compared with
// these: whoever finds one computes it anew. Which fields are known depends on the k8s.io/api version built in, so a new one of those
// can change the hash of a spec that sets a field to its zero value before the types knew it.
//
// # Paths
//
// Differences are named, and additions allowed, by paths in one grammar:
//
//	path     = field { "." field | "[" key "]" | "[" selector "]" } [ "=" value ]
//	field    = one or more of A-Z a-z 0-9 _ -
//	key      = a JSON string: a field or map key with any characters, ["nvidia.com/gpu"]
//	selector = "*"                 any element of a list
//	         | number              the element at this position, from 0
//	         | field "=" value     each element whose field has this value
//	value    = a JSON string       exactly this string
//	         | bare                any printable ASCII but space , [ ] = " \ and *; a last * stands for any ending
//
// A path starts at podTemplate.spec, volumeClaimTemplates or service:
//
//	podTemplate.spec.containers[name=python].env[name=HTTP_PROXY]
//	podTemplate.spec.volumes[name=kube-api-access-*]
//	podTemplate.spec.containers[*].resources.limits["nvidia.com/gpu"]
//	podTemplate.spec.restartPolicy=Always
//
// A path without a value allows what is added at it or below it; one with a value allows the leaf at it with this value. Bare values
// are compared with the text of a leaf: true, 30 and Always; quoted ones match strings only.
package revision
