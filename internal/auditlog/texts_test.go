package auditlog

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestTextsAreReadAsTheyWereWritten(t *testing.T) {
	var kept texts
	want := map[uint32]string{}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		// Together they are several blocks, and one is larger than a block.
		text := fmt.Sprint(i, strings.Repeat("spec ", random.IntN(400)))
		if i == 1000 {
			text = strings.Repeat("x", 2*blockBytes)
		}
		n, err := kept.add([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		want[n] = text
	}
	if len(kept.blocks) < 4 {
		t.Fatalf("%d blocks, want several", len(kept.blocks))
	}
	size := 0
	for _, b := range kept.blocks {
		size += len(b)
	}
	if size > 1<<20 {
		t.Errorf("%d bytes are kept of what is much alike", size)
	}
	for range 3 {
		numbers := []uint32{0, 1, 1, 1001, uint32(len(want))}
		for range 100 {
			numbers = append(numbers, 1+random.Uint32N(uint32(len(want))))
		}
		asked := append([]uint32(nil), numbers...)
		got, err := kept.read(numbers)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range asked {
			if got[n] != want[n] {
				t.Errorf("text %d is %.20q, want %.20q", n, got[n], want[n])
			}
		}
		// More can be written after a read.
		n, err := kept.add([]byte("later"))
		if err != nil {
			t.Fatal(err)
		}
		want[n] = "later"
	}
}

func TestTextsThatAreDamagedAreAnError(t *testing.T) {
	var kept texts
	if _, err := kept.add([]byte("text")); err != nil {
		t.Fatal(err)
	}
	if _, err := kept.read([]uint32{1}); err != nil {
		t.Fatal(err)
	}
	kept.blocks[0] = []byte("no compressed block")
	if got, err := kept.read([]uint32{1}); err == nil {
		t.Errorf("read %v of a damaged block", got)
	}
}
