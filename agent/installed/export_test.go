package installed

// FinishScript is the end of every installation.
const FinishScript = finishScript
