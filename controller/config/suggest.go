package config

import "strings"

// maxTypos is how many edits apart two words may be to pass for each other.
const maxTypos = 2

// didYouMean ends a sentence about an unknown word: with the word that was
// probably meant, else with all that are known.
func didYouMean(word string, known []string) string {
	if best := closest(word, known); best != "" {
		return "did you mean " + best + "?"
	}
	if len(known) == 0 {
		return "there is none"
	}
	return "known: " + clipList(known)
}

// clipList keeps a list of the file's own names readable.
func clipList(words []string) string {
	const most = 32
	if len(words) > most {
		return strings.Join(words[:most], ", ") + ", ..."
	}
	return strings.Join(words, ", ")
}

// closest is the known word nearest to word, or empty if none is near.
func closest(word string, known []string) string {
	const most = 256 // of a long list, the first words will do
	best, least := "", maxTypos+1
	for _, k := range known[:min(len(known), most)] {
		near := maxTypos
		if len(k) <= 3 {
			near = 1 // two edits turn a word of three letters into any other
		}
		if n := edits(strings.ToLower(word), strings.ToLower(k)); n <= near && n < least {
			best, least = k, n
		}
	}
	return best
}

// edits counts the insertions, deletions, substitutions and swaps of neighbours
// that turn a into b (optimal string alignment). It gives up early, with more
// than maxTypos, when the lengths alone rule a match out.
func edits(a, b string) int {
	if len(a)-len(b) > maxTypos || len(b)-len(a) > maxTypos {
		return maxTypos + 1
	}
	var older []int
	last, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
		older, last, row = last, row, make([]int, len(b)+1)
	}
	return last[len(b)]
}
