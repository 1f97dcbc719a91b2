package main

import (
	"path"
	"slices"
	"strings"
)

var shells = []string{"sh", "bash", "ash", "dash"}

// shellScript takes the words after kured out of the script that a shell is given by -c.
func shellScript(words []string) (after []string, found bool) {
	shell := slices.IndexFunc(words, func(word string) bool { return slices.Contains(shells, path.Base(word)) })
	if shell < 0 {
		return nil, false
	}
	words = words[shell+1:]
	flag := slices.IndexFunc(words, func(word string) bool { return strings.HasPrefix(word, "-") && strings.HasSuffix(word, "c") })
	if flag < 0 || flag+1 >= len(words) {
		return nil, false
	}
	for _, command := range splitCommands(words[flag+1]) {
		if i := slices.IndexFunc(command, isProgram); i >= 0 {
			return command[i+1:], true
		}
	}
	return nil, false
}

// splitCommands splits a script into its commands and their words, as a shell sees them. It knows quotes and backslashes;
// it runs nothing and fills in nothing.
func splitCommands(script string) [][]string {
	var s splitter
	for _, r := range script {
		s.take(r)
	}
	s.endCommand()
	return s.commands
}

type splitter struct {
	commands [][]string
	command  []string
	word     strings.Builder
	inWord   bool
	quote    rune
	escaped  bool
}

func (s *splitter) take(r rune) {
	switch {
	case s.escaped:
		s.escaped = false
		if r != '\n' { // a backslash at the end of a line joins it with the next
			s.put(r)
		}
	case r == '\\' && s.quote != '\'':
		s.escaped = true
	case s.quote != 0 && r == s.quote:
		s.quote = 0
	case s.quote != 0:
		s.put(r)
	case r == '"' || r == '\'':
		s.quote, s.inWord = r, true
	case strings.ContainsRune("\n;&|", r):
		s.endCommand()
	case strings.ContainsRune(" \t", r):
		s.endWord()
	default:
		s.put(r)
	}
}

func (s *splitter) put(r rune) {
	s.word.WriteRune(r)
	s.inWord = true
}

func (s *splitter) endWord() {
	if s.inWord {
		s.command = append(s.command, s.word.String())
	}
	s.word.Reset()
	s.inWord = false
}

func (s *splitter) endCommand() {
	s.endWord()
	if len(s.command) > 0 {
		s.commands = append(s.commands, s.command)
	}
	s.command = nil
}
