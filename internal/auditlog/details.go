package auditlog

import (
	"encoding/binary"
	"errors"
	"slices"
)

// details is what is used of an object beside its spec, and what object and version have.
type details struct {
	labels, annotations []pair
	owners              []ownerRef
	deleting            string
	status              status
}

type pair struct{ key, value string }

type ownerRef struct {
	apiVersion, kind, name, uid string
	controller                  *bool
}

// status is what is used of a status.
type status struct {
	ready bool
	// digest tells two statuses apart, where it matters to whom they are different: a claim's.
	digest uint64
	phase  string
	ips    string
	// claimed is how many a claim has that may have several.
	claimed uint64
}

// pack appends the details in a form that takes neither much room nor much time.
func (d *details) pack(b []byte) []byte {
	for _, list := range [][]pair{d.labels, d.annotations} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, p := range list {
			b = packText(packText(b, p.key), p.value)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(d.owners)))
	for _, o := range d.owners {
		for _, s := range []string{o.apiVersion, o.kind, o.name, o.uid} {
			b = packText(b, s)
		}
		b = append(b, packBool(o.controller))
	}
	b = packText(b, d.deleting)
	b = append(b, packBool(&d.status.ready))
	b = binary.AppendUvarint(b, d.status.digest)
	b = binary.AppendUvarint(b, d.status.claimed)
	return packText(packText(b, d.status.phase), d.status.ips)
}

func packText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func packBool(v *bool) byte {
	switch {
	case v == nil:
		return 0
	case *v:
		return 1
	}
	return 2
}

// unpack reads what pack wrote.
func unpack(text string) (*details, error) {
	r := packed{rest: text}
	d := &details{labels: r.pairs(), annotations: r.pairs()}
	for n := r.number(); n > 0 && !r.cut; n-- {
		o := ownerRef{apiVersion: r.text(), kind: r.text(), name: r.text(), uid: r.text()}
		if c := r.byte(); c != 0 {
			controls := c == 1
			o.controller = &controls
		}
		d.owners = append(d.owners, o)
	}
	d.deleting = r.text()
	d.status = status{ready: r.byte() == 1, digest: r.number(), claimed: r.number(), phase: r.text(), ips: r.text()}
	if r.cut || r.rest != "" {
		return nil, errors.New("unpack: it is not what was packed")
	}
	return d, nil
}

// packed is what is left of packed details. After its end, everything is empty.
type packed struct {
	rest string
	cut  bool
}

func (p *packed) byte() byte {
	if p.rest == "" {
		p.cut = true
		return 0
	}
	b := p.rest[0]
	p.rest = p.rest[1:]
	return b
}

func (p *packed) number() uint64 {
	var out uint64
	for shift := 0; shift < 64; shift += 7 {
		b := p.byte()
		if out |= uint64(b&0x7f) << shift; b < 0x80 {
			return out
		}
	}
	p.cut = true
	return 0
}

func (p *packed) text() string {
	n := p.number()
	if n > uint64(len(p.rest)) {
		p.cut = true
		return ""
	}
	s := p.rest[:n]
	p.rest = p.rest[n:]
	return s
}

func (p *packed) pairs() []pair {
	var out []pair
	for n := p.number(); n > 0 && !p.cut; n-- {
		out = append(out, pair{p.text(), p.text()})
	}
	return slices.Clip(out)
}
