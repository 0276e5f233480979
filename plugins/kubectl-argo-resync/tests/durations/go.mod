module durations

go 1.22

require github.com/argoproj/pkg v0.13.6

require github.com/pkg/errors v0.9.1 // indirect
