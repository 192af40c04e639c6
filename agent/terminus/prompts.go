package terminus

import (
	"fmt"
	"strings"
)

// What the model is told, apart from the task. The two forms of answers have a text
// each, and share the rest.

const roleText = `You solve tasks on a Linux machine by working at its terminal. You are given a task and what the terminal shows. Answer with your assessment, your plan and a batch of commands to type. They are typed for you, and you are then shown what came of them; this repeats until you declare the task complete.

`

const jsonFormText = `Answer with one JSON object of this form:

{
  "analysis": "What the terminal shows, what has been achieved, and what is still to be done.",
  "plan": "What you do next, and what each command is meant to achieve.",
  "commands": [
    {"keystrokes": "ls -la\n", "duration": 0.1},
    {"keystrokes": "cd project\n", "duration": 0.1}
  ],
  "task_complete": false
}

Fields:
- "analysis", text, required: what you make of the current state.
- "plan", text, required: the next steps and why.
- "commands", a list, required: what to type, in order. It may be empty if you only want to see the terminal again.
- "task_complete", true or false, optional: whether the task is done. It is false unless given.

Each command is an object with:
- "keystrokes", text, required: exactly what to type.
- "duration", a number, optional: how many seconds to wait before the next command or before you see the terminal. It is 1.0 unless given.

`

const jsonKeysText = `- The text of "keystrokes" is typed as it stands, character by character. End every command line with a newline (\n), or it will not be run.
- A whole text that is the name of a key in tmux presses that key: C-c interrupts, C-d ends the input. Give such a key a command of its own, without a newline.
`

const jsonEndText = `Write nothing before or after the object; text around it is tolerated, with a warning. The object has to be valid JSON: double quotes, line breaks and quotes within text escaped, no trailing commas.

`

const xmlFormText = `Answer in this form:

<response>
<analysis>
What the terminal shows, what has been achieved, and what is still to be done.
</analysis>
<plan>
What you do next, and what each command is meant to achieve.
</plan>
<commands>
<keystrokes duration="0.1">ls -la
</keystrokes>
<keystrokes duration="0.1">cd project
</keystrokes>
</commands>
<task_complete>false</task_complete>
</response>

Sections:
- <analysis>, required: what you make of the current state.
- <plan>, required: the next steps and why.
- <commands>, required: one <keystrokes> element for each thing to type, in order. It may be empty if you only want to see the terminal again.
- <task_complete>, optional: write <task_complete>true</task_complete> when the task is done. Leave it out until then.

The attribute duration="…" of <keystrokes> is optional: how many seconds to wait before the next command or before you see the terminal. It is 1.0 unless given.

`

const xmlKeysText = `- The text of a <keystrokes> element is typed as it stands, character by character, line breaks and spaces included. End every command line with a line break before </keystrokes>, or it will not be run.
- Do not encode anything: write <, > and & themselves, not &lt;, &gt; or &amp;.
- An element that holds nothing but the name of a key in tmux presses that key: C-c interrupts, C-d ends the input. Leave no space or line break around it.
`

const xmlEndText = `Write nothing before <response> or after </response>; text around it is tolerated, with a warning.

`

const durationText = `- Choose the duration by what the command needs: 0.1 for what is done at once (cd, ls, echo, cat), 1.0 for compilers, searches and short programs, and more for what is slow (make, downloads, long scripts).
- Rather wait too short than too long: you can always wait again, with empty keystrokes and a duration of, for example, 10 seconds, and see how far it is.
- Never wait more than 60 seconds at a time.
- Do not add spaces or empty lines around what is to be typed.

`

// firstPrompt tells the model how it works, and of its task.
func firstPrompt(p parser, instruction, terminal string) string {
	form, keys, end := jsonFormText, jsonKeysText, jsonEndText
	if _, ok := p.(xmlParser); ok {
		form, keys, end = xmlFormText, xmlKeysText, xmlEndText
	}
	return roleText + form + "Rules for what is typed:\n" + keys + durationText + end +
		"Task Description:\n" + instruction + "\n\nCurrent terminal state:\n" + terminal + "\n"
}

// confirmPrompt asks whether the task is done.
func confirmPrompt(p parser, terminal string) string {
	confirm := `"task_complete": true`
	if _, ok := p.(xmlParser); ok {
		confirm = "<task_complete>true</task_complete>"
	}
	return "Current terminal state:\n" + terminal + "\n\nDo you really want to finish? What you have done will be graded then, " +
		"and nothing can be corrected any more. If you are sure, answer with " + confirm + " once more; if not, go on."
}

// errorPrompt tells of an answer that could not be used.
func errorPrompt(p parser, feedback string) string {
	return "Previous response had parsing errors:\n" + feedback + "\n\nPlease fix these issues and provide a proper " + p.kind() + "."
}

// warningsObservation is what is seen after an answer that could be used, with doubts.
func warningsObservation(feedback, terminal string) string {
	return "Previous response had warnings:\n" + feedback + "\n\n" + terminal
}

// cutOffPrompt asks for a shorter answer; limit is in tokens, 0 for unknown.
func cutOffPrompt(limit int64, feedback string) string {
	bound := "the maximum output length"
	if limit > 0 {
		bound = fmt.Sprintf("%d tokens", limit)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Your answer was cut off because it is longer than %s. Nothing of it has been executed.\n\n", bound)
	b.WriteString("Answer again with less: do the work in smaller pieces over several answers, " +
		"for example writing a long file part by part.")
	if feedback != "" {
		b.WriteString("\n\nThe part that arrived had these problems:\n" + feedback)
	}
	return b.String()
}

// summaryPrompt asks for a hand-over.
func summaryPrompt(instruction string) string {
	return `Your work is about to be handed over to another agent, who sees nothing of this conversation but what you write now. Write down everything that is needed to continue the task, in detail:

1. Major actions: each important command or change, and why it was made.
2. Results: what came of them, files that were created or changed, and what failed.
3. Facts: what you found out about the machine, the data and the task, with exact names, paths, values and error messages.
4. Problems: which ones came up, how they were solved, and which ones are open.
5. Status: what is done, what is left, and what you would do next.

The original task was:
` + instruction
}

// questionsPrompt asks what a summary leaves open.
func questionsPrompt(instruction, summary, visible string) string {
	return `You are taking over a task that another agent has begun. You have the task, the other agent's summary of the work so far, and what the terminal shows now.

The original task:
` + instruction + `

The summary:
` + summary + `

What the terminal shows:
` + visible + `

Before you begin, ask the other agent about what the summary leaves open and what you need to know to continue. Ask at least five questions, each about something specific.`
}

// answersPrompt has the questions answered.
func answersPrompt(questions string) string {
	return "The agent who takes over has read your summary and has questions about it. " +
		"Answer them one by one, in detail and with exact names, paths and values where there are any.\n\n" + questions
}

// handoffPrompt lets the model continue with the answers.
func handoffPrompt(answers string) string {
	return "These are the answers to your questions:\n\n" + answers +
		"\n\nContinue with the task from here. Ask no further questions, and keep to the form of answers that you were told at the beginning."
}

// briefPrompt asks for a short summary where a full one failed.
func briefPrompt(instruction, visible string) string {
	return "A task is continued without its earlier conversation. In a few sentences, write what a person who continues it should know and do next.\n\n" +
		"The task:\n" + instruction + "\n\nThe end of what the terminal shows:\n" + visible
}
