/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - the engine behind the ABI: the core, and the words around it. Private to csrc/engine.
 */
#ifndef FROND_ENGINE_H
#define FROND_ENGINE_H

#include "core/core.h"
#include "core/defrag.h"
#include "core/recover.h"
#include "core/victims.h"
#include "core/window.h"
#include "text/args.h"
#include "engine/machines.h"
#include "engine/tree.h"

struct level_key { /* of the label that says where a node stands at this level */
	const char *label;
	uint32_t len; /* 0: no such level */
};

struct frond_engine {
	struct core core;
	struct pool text, label_text;
	struct names names, domains; /* their text is in one pool */
	struct names labels;         /* of pods and gangs, for the map */
	struct tree tree;
	struct machines machines;
	struct recover_work recover;
	struct victims_work victims;
	struct window_work window;
	struct defrag_work defrag;
	struct args args;
	struct tuning tuning; /* in force: that of args, or what config_put() has said since */
	struct level_key levels[LEVELS];
};

/* A name as "%.*s" wants it. */
struct name_text {
	int len;
	const char *text;
};

/* Of a leaf, spine, core or NVLink domain. */
static inline struct name_text engine_name(const struct frond_engine *engine, uint32_t id)
{
	uint32_t len;
	const char *text = names_text(&engine->domains, id, &len);
	return (struct name_text){(int)len, text};
}

static inline struct name_text engine_node_name(const struct frond_engine *engine, uint32_t slot)
{
	uint32_t len;
	const char *text = names_text(&engine->names, engine->tree.nodes[slot].name, &len);
	return (struct name_text){(int)len, text};
}

/* explain.c: one sentence for the answer that the core gave last. */
void explain(const struct frond_engine *engine, const struct answer *answer, struct out *out);

/* map.c: spines, leaves, nodes and GPUs as a picture. */
void map_draw(const struct frond_engine *engine, bool color, struct out *out);

const char *rule_text(uint32_t rule);

#endif
