package outcome

var LocateTrials = locateTrials
