package auditlog

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/freshbind/freshbind/internal/checker"
)

// kind says what a write did.
type writeKind uint8

const (
	created writeKind = iota
	changed
	gone
	// goneUnordered: it has no resourceVersion in the log.
	goneUnordered
)

// version is one stored version of an object. There is one for each write of a log, so it is small.
type version struct {
	rv             uint64
	received, done int64 // Unix time in microseconds
	object         *object
	by             *string
	generation     int64
	// details and spec are texts, by number.
	details, spec uint32
	what          writeKind
}

// object is what versions of it have in common.
type object struct {
	kind            *checker.Kind
	namespace, name string
	uid             string
	apiVersion      string
	created         time.Time
	births          int
	last            *version
}

// digest identifies bytes for as long as a Keeper lives. Its seeds are random, so nobody can make two that collide.
type digest [2]uint64

type digester [2]maphash.Seed

func (d digester) of(parts ...[]byte) digest {
	var out digest
	for i, seed := range d {
		var h maphash.Hash
		h.SetSeed(seed)
		for _, p := range parts {
			_, _ = h.Write(p)
			_ = h.WriteByte(0)
		}
		out[i] = h.Sum64()
	}
	return out
}

// stored reads the object in a response. b is its JSON.
type stored struct {
	kind, apiVersion                                    string
	name, namespace, uid, rv, created                   string
	generation                                          int64
	labels, annotations, owners, deleting, final, grace []byte
	spec, status                                        []byte
	detailUID                                           string
	items                                               []byte
}

func parseStored(b []byte) (stored, error) {
	var s stored
	err := fields(b, func(key, value []byte) error {
		switch string(key) {
		case "kind":
			s.kind = text(value)
		case "apiVersion":
			s.apiVersion = text(value)
		case "metadata":
			return s.readMetadata(value)
		case "spec":
			s.spec = value
		case "status":
			s.status = value
		case "items":
			s.items = value
		case "details":
			return fields(value, func(key, value []byte) error {
				if string(key) == "uid" {
					s.detailUID = text(value)
				}
				return nil
			})
		}
		return nil
	})
	return s, err
}

func (s *stored) readMetadata(value []byte) error {
	return fields(value, func(key, value []byte) error {
		switch string(key) {
		case "name":
			s.name = text(value)
		case "namespace":
			s.namespace = text(value)
		case "uid":
			s.uid = text(value)
		case "resourceVersion":
			s.rv = text(value)
		case "creationTimestamp":
			s.created = text(value)
		case "generation":
			s.generation, _ = strconv.ParseInt(string(value), 10, 64)
		case "labels":
			s.labels = value
		case "annotations":
			s.annotations = value
		case "ownerReferences":
			s.owners = value
		case "deletionTimestamp":
			s.deleting = value
		case "deletionGracePeriodSeconds":
			s.grace = value
		case "finalizers":
			s.final = value
		}
		return nil
	})
}

// ours are the beginnings of the keys of labels and annotations that the judgement knows. Of namespaces, floors may select
// by any label.
var ours = []string{"freshbind.dev/", "agents.x-k8s.io/", "agents.kruise.io/"}

func pairs(b []byte, all bool) []pair {
	if len(b) == 0 {
		return nil
	}
	var out []pair
	// What is no object holds no pair.
	_ = fields(b, func(key, value []byte) error {
		if all || slices.ContainsFunc(ours, func(p string) bool { return bytes.HasPrefix(key, []byte(p)) }) {
			out = append(out, pair{string(key), text(value)})
		}
		return nil
	})
	slices.SortFunc(out, func(a, b pair) int { return cmp.Compare(a.key, b.key) })
	return out
}

func (s *stored) details(r checker.Resource, d digester) (*details, error) {
	owners, err := owners(s.owners)
	if err != nil {
		return nil, fmt.Errorf("metadata.ownerReferences: %w", err)
	}
	return &details{labels: pairs(s.labels, r == checker.Namespaces), annotations: pairs(s.annotations, false), owners: owners,
		deleting: text(s.deleting), status: readStatus(r, s.status, d)}, nil
}

func owners(b []byte) ([]ownerRef, error) {
	if len(b) == 0 {
		return nil, nil
	}
	var out []ownerRef
	err := items(b, func(one []byte) error {
		var o ownerRef
		err := fields(one, func(key, value []byte) error {
			switch string(key) {
			case "apiVersion":
				o.apiVersion = text(value)
			case "kind":
				o.kind = text(value)
			case "name":
				o.name = text(value)
			case "uid":
				o.uid = text(value)
			case "controller":
				controls := string(value) == "true"
				o.controller = &controls
			}
			return nil
		})
		out = append(out, o)
		return err
	})
	return out, err
}

// held reports whether an object that is being deleted stays: for its finalizers, or for the time that a Pod is given.
func (s *stored) held() bool {
	grace, _ := strconv.ParseInt(string(s.grace), 10, 64)
	return grace != 0 || len(s.final) > 0 && items(s.final, func([]byte) error { return errCut }) != nil
}

// readStatus keeps of a status what the resource's judgement uses.
func readStatus(r checker.Resource, raw []byte, d digester) status {
	var out status
	if len(raw) == 0 {
		return out
	}
	if r == checker.Claims {
		out.digest = d.of(raw)[0]
	}
	// What is no object says nothing.
	_ = fields(raw, func(key, value []byte) error {
		switch string(key) {
		case "conditions":
			out.ready = readyIn(value)
		case "phase":
			out.phase = text(value)
		case "podIPs":
			out.ips = addresses(value)
		case "podInfo":
			out.ips = podIP(value)
		case "claimedReplicas":
			out.claimed, _ = strconv.ParseUint(string(value), 10, 64)
		}
		return nil
	})
	return out
}

func readyIn(conditions []byte) bool {
	ready := false
	_ = items(conditions, func(one []byte) error {
		kind, value := "", ""
		_ = fields(one, func(key, v []byte) error {
			switch string(key) {
			case "type":
				kind = text(v)
			case "status":
				value = text(v)
			}
			return nil
		})
		ready = ready || kind == "Ready" && value == "True"
		return nil
	})
	return ready
}

// podIP is the address of the Pod that OpenKruise's Sandboxes show.
func podIP(info []byte) string {
	ip := ""
	_ = fields(info, func(key, value []byte) error {
		if string(key) == "podIP" {
			ip = text(value)
		}
		return nil
	})
	return ip
}

// addresses are those of a Pod ({"ip": …}) or of a Sandbox (strings), separated by commas.
func addresses(list []byte) string {
	var out []string
	_ = items(list, func(one []byte) error {
		if len(one) > 0 && one[0] == '{' {
			return fields(one, func(key, v []byte) error {
				if string(key) == "ip" {
					out = append(out, text(v))
				}
				return nil
			})
		}
		out = append(out, text(one))
		return nil
	})
	return strings.Join(out, ",")
}

// listed is the list of addresses as Pods have it, or Sandboxes.
func listed(ips string, k *checker.Kind) []any {
	var out []any
	for ip := range strings.SplitSeq(ips, ",") {
		if k.Resource == checker.Pods {
			out = append(out, map[string]any{"ip": ip})
		} else {
			out = append(out, ip)
		}
	}
	return out
}
