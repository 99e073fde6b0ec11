/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - the engine behind the ABI: the core, and the words around it. Private to csrc/text.
 */
#ifndef FROND_TEXT_ENGINE_H
#define FROND_TEXT_ENGINE_H

#include "core/core.h"
#include "text/args.h"
#include "text/tree.h"

struct frond_engine {
	struct core core;
	struct names names;
	struct tree tree;
	struct args args;
};

/* A name as "%.*s" wants it. */
struct name_text {
	int len;
	const char *text;
};

static inline struct name_text engine_name(const struct frond_engine *engine, uint32_t id)
{
	uint32_t len;
	const char *text = names_text(&engine->names, id, &len);
	return (struct name_text){(int)len, text};
}

static inline struct name_text engine_node_name(const struct frond_engine *engine, uint32_t slot)
{
	return engine_name(engine, engine->tree.nodes[slot].name);
}

/* text/explain.c: one sentence for the answer that the core gave last. */
void explain(const struct frond_engine *engine, const struct answer *answer, struct out *out);

/* text/map.c: spines, leaves, nodes and GPUs as a picture. */
void map_draw(const struct frond_engine *engine, bool color, struct out *out);

const char *rule_text(uint32_t rule);

#endif
