package main

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// envSample names the variable that takes a part of the mutants, by any text: a commit
// always has the same, and another commit most likely another.
const envSample = "MUTANTS_SAMPLE"

// What mutants cost in seconds on two cores, about: building the tests of a folder is most
// of it. One that hangs costs more, and few do.
const (
	folderCost  = 15
	mutantCost  = 1
	clusterCost = 30
	sampleCost  = 110
)

// onClusters are the folders whose tests start a control plane for each mutant.
var onClusters = []string{"test/chart"}

// costs are those of a mutant, and of building its folder and running the tests without one.
func (m mutant) costs() (one, folder int) {
	if slices.Contains(onClusters, m.folder()) {
		return clusterCost, folderCost + clusterCost
	}
	return mutantCost, folderCost
}

// samples cuts mutants into parts that cost about the same, and have those of one folder
// side by side.
func samples(all []mutant) [][]mutant {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b mutant) int { return strings.Compare(a.folder(), b.folder()) })
	var parts [][]mutant
	spent, folder := sampleCost, ""
	for _, m := range sorted {
		cost, build := m.costs()
		if m.folder() != folder {
			cost += build
		}
		if spent+cost > sampleCost {
			one, _ := m.costs()
			parts, spent, cost = append(parts, nil), 0, build+one
		}
		folder = m.folder()
		last := len(parts) - 1
		parts[last], spent = append(parts[last], m), spent+cost
	}
	return parts
}

// sample is the part that a text stands for, and its name for people.
func sample(all []mutant, text string) ([]mutant, string, error) {
	if text == "" {
		return nil, "", errors.New("it is empty: name a commit")
	}
	parts := samples(all)
	sum := sha256.Sum256([]byte(text))
	i := int(binary.BigEndian.Uint32(sum[:]) % uint32(len(parts)))
	return parts[i], fmt.Sprintf("part %d of %d, for %s", i+1, len(parts), text), nil
}
