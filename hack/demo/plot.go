package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/freshbind/freshbind/hack/demo/counts"
)

const (
	// plotColumns by plotRows characters, beside a scale of plotMargin.
	plotColumns = 68
	plotRows    = 8
	plotMargin  = 6

	claimable = "█"
	readyOnly = "░"
)

// plot draws how many members were claimable, and ready besides, between the
// edit and the end. Each column shows the lowest counts of its span of time.
func plot(instants []counts.Instant, end time.Time, replicas int) []string {
	columns := lowest(instants, end)
	lines := make([]string, 0, plotRows+1)
	for row := plotRows; row > 0; row-- {
		// A row is full when more than the middle of it is.
		level := float64(replicas) * (float64(row) - 0.5) / plotRows
		line := fmt.Sprintf("%*d ", plotMargin-1, (replicas*row+plotRows-1)/plotRows)
		for _, c := range columns {
			switch {
			case float64(c.Claimable) > level:
				line += claimable
			case float64(c.Ready) > level:
				line += readyOnly
			default:
				line += " "
			}
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return append(lines, axis(end.Sub(instants[0].At)))
}

// axis marks the seconds.
func axis(span time.Duration) string {
	marks := []byte(strings.Repeat(" ", plotMargin+plotColumns))
	every := time.Second
	for span/every > plotColumns/8 {
		every *= 2
	}
	for at := time.Duration(0); at <= span; at += every {
		text := fmt.Sprintf("|%.0f s", at.Seconds())
		column := plotMargin + int(float64(plotColumns)*float64(at)/float64(max(span, 1)))
		if column+len(text) <= len(marks) {
			copy(marks[column:], text)
		}
	}
	return strings.TrimRight(string(marks), " ")
}

// lowest has one entry a column. What an instant shows holds until the next.
func lowest(instants []counts.Instant, end time.Time) []counts.Instant {
	start := instants[0].At
	width := max(end.Sub(start)/plotColumns, 1)
	columns := make([]counts.Instant, 0, plotColumns)
	now, next := instants[0], 1
	for c := range plotColumns {
		low := now
		until := start.Add(width * time.Duration(c+1))
		for ; next < len(instants) && instants[next].At.Before(until); next++ {
			now = instants[next]
			low.Ready, low.Claimable = min(low.Ready, now.Ready), min(low.Claimable, now.Claimable)
		}
		columns = append(columns, low)
	}
	return columns
}
