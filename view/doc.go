// Package view has the pages on which people look at what happened: jobs, their trials,
// what agents did and what was printed. They are made of the files of job directories,
// Harbor's as well as proctor's own, at the time of each request; nothing is written.
//
//	s, err := view.New(view.Options{Dirs: []string{"jobs"}, Now: time.Now})
//	http.Serve(listener, s)
//
// What tasks and agents wrote is hostile: it is shown as text and never as a page, a
// script or a style of the server's, and nothing outside the given directories is read.
// Pages load nothing from elsewhere.
package view
