package auditlog

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"slices"
)

// blockBytes is how much text is compressed at a time. Texts that are read together were mostly written together.
const blockBytes = 256 << 10

// texts keeps what was stored, compressed, as what a pool has is much alike.
type texts struct {
	places []place
	blocks [][]byte
	open   []byte // the block that is being filled
	packer *flate.Writer
}

// place is where a text is.
type place struct{ block, at, size uint32 }

// add keeps a text, and returns its number. Numbers begin with 1.
func (t *texts) add(text []byte) (uint32, error) {
	if len(t.open) > 0 && len(t.open)+len(text) > blockBytes {
		if err := t.seal(); err != nil {
			return 0, err
		}
	}
	t.places = append(t.places, place{uint32(len(t.blocks)), uint32(len(t.open)), uint32(len(text))})
	t.open = append(t.open, text...)
	return uint32(len(t.places)), nil
}

func (t *texts) seal() error {
	var out bytes.Buffer
	if t.packer == nil {
		t.packer, _ = flate.NewWriter(&out, flate.BestSpeed) // it fails for unknown levels only
	}
	t.packer.Reset(&out)
	if _, err := t.packer.Write(t.open); err != nil {
		return fmt.Errorf("compress: %w", err)
	}
	if err := t.packer.Close(); err != nil {
		return fmt.Errorf("compress: %w", err)
	}
	t.blocks = append(t.blocks, bytes.Clone(out.Bytes()))
	t.open = t.open[:0]
	return nil
}

// read returns texts by their numbers, of which 0 is none. Each block is opened once. It orders the numbers.
func (t *texts) read(numbers []uint32) (map[uint32]string, error) {
	if len(t.open) > 0 {
		if err := t.seal(); err != nil {
			return nil, err
		}
	}
	slices.Sort(numbers)
	out := make(map[uint32]string, len(numbers))
	var block bytes.Buffer
	opened := -1
	for _, n := range slices.Compact(numbers) {
		if n == 0 {
			continue
		}
		p := t.places[n-1]
		if opened != int(p.block) {
			opened = int(p.block)
			block.Reset()
			if _, err := io.Copy(&block, flate.NewReader(bytes.NewReader(t.blocks[opened]))); err != nil {
				return nil, fmt.Errorf("uncompress: %w", err)
			}
		}
		out[n] = string(block.Bytes()[p.at : p.at+p.size])
	}
	return out, nil
}
