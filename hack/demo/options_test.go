package main

import "testing"

func TestParse(t *testing.T) {
	cases := map[string]struct {
		args  []string
		limit int
		want  string
	}{
		"no option":                         {nil, 1, ""},
		"a number":                          {[]string{"--nodes", "7", "--max-unavailable", "3"}, 3, ""},
		"an engine":                         {[]string{"--engine=rpm-ostree"}, 1, ""},
		"an unknown engine":                 {[]string{"--engine=yum"}, 0, `--engine: engine "yum" cannot be simulated; choose from update-engine, cos-update-engine, rpm-ostree, zincati, sentinel`},
		"several engines":                   {[]string{"--engine=rpm-ostree,sentinel"}, 1, ""},
		"one of several engines unknown":    {[]string{"--engine=sentinel,"}, 0, `--engine: engine "" cannot be simulated; choose from update-engine, cos-update-engine, rpm-ostree, zincati, sentinel`},
		"a limit above the number of nodes": {[]string{"--engine=rpm-ostree,sentinel,cos-update-engine", "--nodes=2"}, 0, "--engine names 3 engines for --nodes 2"},
		"one node":                          {[]string{"--nodes", "1"}, 0, "--nodes is 1, but must be from 2 to 100"},
		"a limit of 0":                      {[]string{"--max-unavailable", "0"}, 0, "--max-unavailable is 0, but must be at least 1"},
		"a limit of all nodes":              {[]string{"--nodes", "3", "--max-unavailable", "3"}, 0, "--max-unavailable 3 of 3 nodes leaves no node for the pods, whose PodDisruptionBudgets would block the drains"},
		"an argument":                       {[]string{"now"}, 0, `unexpected argument "now"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o, err := parse(tc.args)
			if err != nil || tc.want != "" {
				if err == nil || err.Error() != tc.want {
					t.Errorf("error %v, want %s", err, tc.want)
				}
				return
			}
			if o.limit != tc.limit {
				t.Errorf("limit %d, want %d", o.limit, tc.limit)
			}
		})
	}
}
