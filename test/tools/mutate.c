/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutate.c - small wrong changes to a C file, for mutants.sh: mutate FILE lists them, mutate FILE N prints the file with
 * the Nth of them made. A line of the list is number, line, change and the line's text, with tabs between.
 *
 * Works on tokens: comments, strings, preprocessor lines and asserts (our own guarantees, not behaviour) stay as they
 * are. What does not compile is the caller's to draw again.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 1 << 20, TOKENS_MAX = 1 << 17, CHANGE_MAX = 96, SHOWN_MAX = 40 };

enum token_kind { TOKEN_WORD, TOKEN_NUMBER, TOKEN_SIGN };

struct token {
	enum token_kind kind;
	uint32_t at, len, line;
	uint32_t parens; /* round brackets open around it */
	bool in_assert;
};

struct source {
	char text[TEXT_MAX];
	uint32_t len;
	struct token tokens[TOKENS_MAX];
	uint32_t count;
};

/* Replaces text[at, at + len) by before, what was there if kept, and after. */
struct change {
	uint32_t at, len, line;
	bool keeps;
	const char *before, *after;
	char shown[CHANGE_MAX]; /* "< → <=" */
};

struct walk { /* numbers the changes as they are found; makes the wanted one */
	const struct source *source;
	uint32_t next, wanted; /* 0: list them */
};

/* ---- tokens ----------------------------------------------------------------------------------------------------- */

/* Past a comment, a string, a character or a preprocessor line at `at`; `at` itself when there is none. */
static uint32_t skip_quiet(const struct source *source, uint32_t at)
{
	const char *text = source->text;
	uint32_t end = source->len;
	if (text[at] == '/' && text[at + 1] == '*') {
		const char *close = strstr(text + at + 2, "*/");
		return close != NULL ? (uint32_t)(close - text) + 2 : end;
	}
	if (text[at] == '#' || (text[at] == '/' && text[at + 1] == '/')) {
		while (at < end && (text[at] != '\n' || text[at - 1] == '\\'))
			at++;
		return at;
	}
	if (text[at] == '"' || text[at] == '\'') {
		char quote = text[at++];
		while (at < end && text[at] != quote)
			at += text[at] == '\\' ? 2 : 1;
		return at + 1;
	}
	return at;
}

static uint32_t sign_length(const char *text)
{
	static const char *const signs[] = {"<<=", ">>=", "...", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
					    "->",  "++",  "--",  "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="};
	for (uint32_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
		if (strncmp(text, signs[i], strlen(signs[i])) == 0)
			return (uint32_t)strlen(signs[i]);
	return 1;
}

static bool is(const struct source *source, uint32_t token, const char *text)
{
	const struct token *t = &source->tokens[token];
	return token < source->count && strlen(text) == t->len && memcmp(source->text + t->at, text, t->len) == 0;
}

static bool is_word_byte(char byte)
{
	return isalnum((unsigned char)byte) || byte == '_';
}

static void tokenize(struct source *source)
{
	uint32_t line = 1, counted = 0, parens = 0, assert_parens = UINT32_MAX;
	for (uint32_t at = 0; at < source->len;) {
		uint32_t past = skip_quiet(source, at);
		if (past != at || isspace((unsigned char)source->text[at])) {
			at = past != at ? past : at + 1;
			continue;
		}
		for (; counted < at; counted++)
			line += source->text[counted] == '\n';
		struct token *token = &source->tokens[source->count++];
		if (source->count == TOKENS_MAX)
			exit(2);
		*token = (struct token){
			.kind = TOKEN_SIGN, .at = at, .len = sign_length(source->text + at), .line = line};
		if (is_word_byte(source->text[at])) {
			token->kind = isdigit((unsigned char)source->text[at]) ? TOKEN_NUMBER : TOKEN_WORD;
			for (token->len = 0; is_word_byte(source->text[at + token->len]);)
				token->len++;
		}
		uint32_t last = source->count - 1;
		if (is(source, last, ")"))
			parens--;
		if (parens == assert_parens && is(source, last, ";"))
			assert_parens = UINT32_MAX;
		if (is(source, last, "assert"))
			assert_parens = parens;
		token->parens = parens;
		token->in_assert = assert_parens != UINT32_MAX;
		if (is(source, last, "("))
			parens++;
		at += token->len;
	}
}

/* ---- changes ---------------------------------------------------------------------------------------------------- */

static void show_line(const struct source *source, uint32_t at)
{
	uint32_t start = at, end = at;
	while (start > 0 && source->text[start - 1] != '\n')
		start--;
	while (isspace((unsigned char)source->text[start]))
		start++;
	while (end < source->len && source->text[end] != '\n')
		end++;
	for (; start < end; start++)
		putchar(source->text[start] == '\t' ? ' ' : source->text[start]);
	putchar('\n');
}

static void offer(struct walk *walk, const struct change *change)
{
	const struct source *source = walk->source;
	walk->next++;
	if (walk->wanted == 0) {
		printf("%u\t%u\t%s\t", (unsigned)walk->next, (unsigned)change->line, change->shown);
		show_line(source, change->at);
	} else if (walk->wanted == walk->next) {
		fwrite(source->text, 1, change->at, stdout);
		fputs(change->before, stdout);
		if (change->keeps)
			fwrite(source->text + change->at, 1, change->len, stdout);
		fputs(change->after, stdout);
		fwrite(source->text + change->at + change->len, 1, source->len - change->at - change->len, stdout);
	}
}

/* How often the same text stands on the line before this token: changes on one line stay apart by it. */
static uint32_t occurrence(const struct source *source, uint32_t token)
{
	const struct token *t = &source->tokens[token];
	uint32_t count = 1;
	for (uint32_t i = token; i-- > 0 && source->tokens[i].line == t->line;)
		count += source->tokens[i].len == t->len &&
			 memcmp(source->text + source->tokens[i].at, source->text + t->at, t->len) == 0;
	return count;
}

static void replace_token(struct walk *walk, uint32_t token, const char *with)
{
	const struct token *t = &walk->source->tokens[token];
	struct change change = {.at = t->at, .len = t->len, .line = t->line, .before = with, .after = ""};
	uint32_t nth = occurrence(walk->source, token);
	int used =
		snprintf(change.shown, sizeof change.shown, "%.*s → %s", (int)t->len, walk->source->text + t->at, with);
	if (nth > 1 && used > 0 && (size_t)used < sizeof change.shown)
		snprintf(change.shown + used, sizeof change.shown - (size_t)used, " #%u", (unsigned)nth);
	offer(walk, &change);
}

/* Relations get their bound moved or are turned round, "and" becomes "or", the smaller becomes the larger. */
static void swap_token(struct walk *walk, uint32_t token)
{
	static const char *const swaps[][2] = {
		{"<", "<="},
		{"<", ">="},
		{"<=", "<"},
		{"<=", ">"},
		{">", ">="},
		{">", "<="},
		{">=", ">"},
		{">=", "<"},
		{"==", "!="},
		{"!=", "=="},
		{"&&", "||"},
		{"||", "&&"},
		{"min_u32", "max_u32"},
		{"max_u32", "min_u32"},
		{"min_u64", "max_u64"},
		{"max_u64", "min_u64"},
	};
	for (uint32_t i = 0; i < sizeof swaps / sizeof swaps[0]; i++)
		if (is(walk->source, token, swaps[i][0]))
			replace_token(walk, token, swaps[i][1]);
}

static void shift_number(struct walk *walk, uint32_t token)
{
	const struct token *t = &walk->source->tokens[token];
	char *suffix, with[SHOWN_MAX];
	unsigned long long number = strtoull(walk->source->text + t->at, &suffix, 0);
	int suffix_len = (int)(walk->source->text + t->at + t->len - suffix);
	snprintf(with, sizeof with, "%llu%.*s", number + 1, suffix_len, suffix);
	replace_token(walk, token, with);
	if (number == 0)
		return;
	snprintf(with, sizeof with, "%llu%.*s", number - 1, suffix_len, suffix);
	replace_token(walk, token, with);
}

static void negate_condition(struct walk *walk, uint32_t token)
{
	const struct source *source = walk->source;
	uint32_t open = token + 1, close = open + 1;
	if (!is(source, open, "("))
		return;
	while (close < source->count &&
	       !(is(source, close, ")") && source->tokens[close].parens == source->tokens[open].parens))
		close++;
	if (close == source->count)
		return;
	const struct token *from = &source->tokens[open], *to = &source->tokens[close];
	struct change change = {.at = from->at,
				.len = to->at + to->len - from->at,
				.line = from->line,
				.keeps = true,
				.before = "(!",
				.after = ")"};
	snprintf(change.shown, sizeof change.shown, "negate the condition of %.*s", (int)source->tokens[token].len,
		 source->text + source->tokens[token].at);
	offer(walk, &change);
}

/* Whether this closing bracket ends the condition of an if, for or while. */
static bool ends_condition(const struct source *source, uint32_t close)
{
	uint32_t open = close;
	while (open > 0 && !(is(source, open, "(") && source->tokens[open].parens == source->tokens[close].parens))
		open--;
	return open > 0 && (is(source, open - 1, "if") || is(source, open - 1, "for") || is(source, open - 1, "while"));
}

/* A statement begins after one that ended, a brace, "else", or a condition. */
static bool begins_statement(const struct source *source, uint32_t token)
{
	const struct token *t = &source->tokens[token];
	if (token == 0 || t->parens > 0)
		return false;
	if (t->kind != TOKEN_WORD && !is(source, token, "*") && !is(source, token, "++") && !is(source, token, "--"))
		return false;
	return is(source, token - 1, ";") || is(source, token - 1, "{") || is(source, token - 1, "}") ||
	       is(source, token - 1, "else") || (is(source, token - 1, ")") && ends_condition(source, token - 1));
}

static void drop_statement(struct walk *walk, uint32_t token)
{
	static const char *const others[] = {"if",       "for",     "while",   "else",     "do",     "switch",
					     "case",     "default", "goto",    "static",   "struct", "enum",
					     "union",    "const",   "int",     "uint32_t", "bool",   "void",
					     "uint64_t", "char",    "typedef", ";",        "{",      "}"};
	const struct source *source = walk->source;
	for (uint32_t i = 0; i < sizeof others / sizeof others[0]; i++)
		if (is(source, token, others[i]))
			return;
	uint32_t end = token;
	for (; end < source->count && !(is(source, end, ";") && source->tokens[end].parens == 0); end++)
		if (is(source, end, "{") || is(source, end, "}"))
			return;
	if (end == source->count)
		return;
	const struct token *from = &source->tokens[token], *to = &source->tokens[end];
	struct change change = {
		.at = from->at, .len = to->at - from->at, .line = from->line, .before = "", .after = ""};
	uint32_t len = change.len < SHOWN_MAX ? change.len : SHOWN_MAX;
	int used = snprintf(change.shown, sizeof change.shown, "drop %.*s", (int)len, source->text + change.at);
	for (int i = 0; i < used && i < CHANGE_MAX; i++)
		if (isspace((unsigned char)change.shown[i]))
			change.shown[i] = ' ';
	offer(walk, &change);
}

static void walk_all(struct walk *walk)
{
	const struct source *source = walk->source;
	for (uint32_t token = 0; token < source->count; token++) {
		if (source->tokens[token].in_assert)
			continue;
		swap_token(walk, token);
		if (source->tokens[token].kind == TOKEN_NUMBER)
			shift_number(walk, token);
		if (is(source, token, "if") || is(source, token, "while"))
			negate_condition(walk, token);
		if (begins_statement(source, token))
			drop_statement(walk, token);
	}
}

int main(int argc, char **argv)
{
	static struct source source;
	FILE *file = argc == 2 || argc == 3 ? fopen(argv[1], "r") : NULL;
	if (file == NULL) {
		fprintf(stderr, "usage: mutate FILE [NUMBER]\n");
		return 2;
	}
	source.len = (uint32_t)fread(source.text, 1, TEXT_MAX - 2, file);
	fclose(file);
	tokenize(&source);
	struct walk walk = {.source = &source, .wanted = argc == 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0};
	walk_all(&walk);
	return walk.wanted > walk.next ? 2 : 0;
}
