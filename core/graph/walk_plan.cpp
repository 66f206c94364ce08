// Compiles a walk: numbers nodes and loops in the order of the graph, says for every edge whether it stays in the
// iteration or is carried to the next one, and which inputs a loop must keep.
#include "core/graph/walk_plan.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace cairn {

class WalkCompiler {
 public:
  WalkCompiler(const ModelSpec& spec, std::uint32_t walk) : spec_(spec), walk_(spec.walks.at(walk)) {
    plan_.walk_ = walk;
    plan_.name_ = walk_.name;
    plan_.node_mask_ = walk_.nodes;
    plan_.plan_node_.assign(spec.nodes.size(), CAIRN_NONE);
    plan_.plan_loop_.assign(spec.loops.size(), CAIRN_NONE);
    plan_.signal_names_ = spec.signals;
  }

  WalkPlan compile() {
    number_sections();
    for (PlanNode& node : plan_.nodes) add_inputs(node);
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i) plan_.nodes[i].outputs = add_node_outputs(i);
    for (std::size_t i = 0; i < plan_.loops.size(); ++i) plan_.loops[i].outputs = add_loop_outputs(i);
    connect_loop_outputs();
    for (std::uint32_t input = 0; input < plan_.inputs.size(); ++input) add_externals(input);
    return std::move(plan_);
  }

 private:
  // Where a section sits: its parent, its place among the parent's children, and the loop around it.
  struct Place {
    std::uint32_t parent = CAIRN_NONE;
    std::uint32_t position = 0;
    std::uint32_t loop = CAIRN_NONE;        // plan loop around the section (a loop section: not itself)
    std::uint32_t plan_index = CAIRN_NONE;  // node or loop sections: their plan node or loop
  };
  struct Flow {  // an edge between entities, for the search of external inputs
    std::uint32_t producer_section;
    std::uint32_t input;
    std::uint32_t carrier;  // CAIRN_NONE: forward
  };

  std::string where() const { return "Walk \"" + walk_.name + "\""; }
  std::string describe(std::uint32_t section) const {
    const SectionSpec& spec = walk_.sections[section];
    if (spec.kind == CAIRN_SECTION_NODE) return where() + ", node \"" + spec_.nodes[spec.node].name + "\"";
    return where() + ", loop at section " + std::to_string(section);
  }

  void number_sections() {
    places_.resize(walk_.sections.size());
    std::vector<std::uint32_t> open{walk_.root};
    while (!open.empty()) {
      const std::uint32_t index = open.back();
      open.pop_back();
      const SectionSpec& section = walk_.sections[index];
      std::uint32_t inner = places_[index].loop;
      if (section.kind == CAIRN_SECTION_NODE) number_node(index, section);
      if (section.kind == CAIRN_SECTION_LOOP) inner = number_loop(index, section);
      for (std::uint32_t i = static_cast<std::uint32_t>(section.children.size()); i-- > 0;) {
        const std::uint32_t child = section.children[i];
        places_[child] = {index, i, inner, CAIRN_NONE};
        open.push_back(child);
      }
    }
  }

  void count_entity(std::uint32_t loop) { ++(loop == CAIRN_NONE ? plan_.entities : plan_.loops[loop].entities); }

  void number_node(std::uint32_t index, const SectionSpec& section) {
    const auto plan_index = static_cast<std::uint32_t>(plan_.nodes.size());
    Place& place = places_[index];
    place.plan_index = plan_index;
    PlanNode node;
    node.node = section.node;
    node.loop = place.loop;
    node.flags = section.flags;
    plan_.nodes.push_back(node);
    plan_.node_names_.push_back(spec_.nodes[section.node].name);
    plan_.plan_node_[section.node] = plan_index;
    node_sections_.push_back(index);
    count_entity(place.loop);
    for (std::uint32_t loop = place.loop; loop != CAIRN_NONE; loop = plan_.loops[loop].parent) {
      plan_.loops[loop].nodes |= std::uint64_t{1} << plan_index;
    }
  }

  std::uint32_t number_loop(std::uint32_t index, const SectionSpec& section) {
    const auto plan_index = static_cast<std::uint32_t>(plan_.loops.size());
    if (plan_index >= kMaxLoops) {
      throw InvalidArgument(where() + " has more than " + std::to_string(kMaxLoops) + " loops.");
    }
    Place& place = places_[index];
    place.plan_index = plan_index;
    count_entity(place.loop);
    PlanLoop loop;
    loop.parent = place.loop;
    loop.model_loop = section.loop;
    loop.max_iters = section.max_iters;
    if (section.loop != CAIRN_NONE) {
      loop.stop_slot = static_cast<std::uint32_t>(plan_.stoppable.size());
      plan_.stoppable.push_back(plan_index);
      plan_.plan_loop_[section.loop] = plan_index;
    }
    for (std::uint32_t outer = place.loop; outer != CAIRN_NONE; outer = plan_.loops[outer].parent) {
      plan_.loops[outer].loops |= std::uint64_t{1} << plan_index;
    }
    plan_.loops.push_back(std::move(loop));
    loop_sections_.push_back(index);
    return plan_index;
  }

  void add_inputs(PlanNode& node) {
    const SectionSpec& section = walk_.sections[node_sections_[plan_.plan_node_[node.node]]];
    node.inputs.begin = static_cast<std::uint32_t>(plan_.inputs.size());
    for (const std::uint32_t signal : section.inputs) {
      const auto index = static_cast<std::uint32_t>(plan_.inputs.size());
      PlanInput input;
      input.node = node.node;
      input.signal = signal;
      plan_.inputs.push_back(input);
      plan_.input_signals_.push_back(signal);
      if (node.loop != CAIRN_NONE) plan_.inputs[index].buffer = buffer_of(index, node.loop);
    }
    node.inputs.end = static_cast<std::uint32_t>(plan_.inputs.size());
    node.required = node.inputs.size() == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << node.inputs.size()) - 1;
  }

  std::uint32_t buffer_of(std::uint32_t input, std::uint32_t loop) {
    for (const std::uint32_t buffer : plan_.loops[loop].buffers) {
      if (plan_.buffers[buffer] == input) return buffer;
    }
    const auto buffer = static_cast<std::uint32_t>(plan_.buffers.size());
    plan_.buffers.push_back(input);
    plan_.loops[loop].buffers.push_back(buffer);
    return buffer;
  }

  PlanRange add_node_outputs(std::size_t node) {
    const std::uint32_t section = node_sections_[node];
    PlanRange range{static_cast<std::uint32_t>(plan_.outputs.size()), 0};
    add_outputs(section, walk_.sections[section].outputs, false);
    range.end = static_cast<std::uint32_t>(plan_.outputs.size());
    return range;
  }

  PlanRange add_loop_outputs(std::size_t loop) {
    const std::uint32_t section = loop_sections_[loop];
    PlanRange range{static_cast<std::uint32_t>(plan_.outputs.size()), 0};
    add_outputs(section, walk_.sections[section].outputs, false);
    add_outputs(section, walk_.sections[section].accumulated_outputs, true);
    range.end = static_cast<std::uint32_t>(plan_.outputs.size());
    return range;
  }

  // One PlanOutput per signal, in the order in which the graph first names it.
  void add_outputs(std::uint32_t section, const std::vector<EdgeSpec>& edges, bool accumulate) {
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const auto same = [&](const EdgeSpec& edge) { return edge.signal == edges[i].signal; };
      if (std::any_of(edges.begin(), edges.begin() + static_cast<std::ptrdiff_t>(i), same)) continue;
      PlanOutput output;
      output.signal = edges[i].signal;
      output.accumulate = accumulate;
      output.edges.begin = static_cast<std::uint32_t>(plan_.edges.size());
      bool persists = false;
      for (std::size_t k = i; k < edges.size(); ++k) {
        if (!same(edges[k])) continue;
        PlanEdge edge = compile_edge(section, edges[k]);
        if (persists) edge.persist = false;  // once per value
        persists = persists || edge.persist;
        output.new_token = output.new_token || edge.new_token;
        plan_.edges.push_back(edge);
      }
      output.edges.end = static_cast<std::uint32_t>(plan_.edges.size());
      plan_.outputs.push_back(output);
      plan_.output_signals_.push_back(output.signal);
    }
  }

  PlanEdge compile_edge(std::uint32_t section, const EdgeSpec& spec) {
    if (spec.streams()) {
      throw NotSupported(describe(section) + ": signal \"" + spec_.signals[spec.signal] +
                         "\" leaves on a streaming edge, which this host does not drive yet.");
    }
    PlanEdge edge;
    edge.persist = spec.persists();
    edge.new_token = spec.counts_tokens();
    if (spec.next_node == CAIRN_EMIT_TO_CLIENT) {
      edge.kind = PlanEdgeKind::kEmit;
      edge.modality = spec.output_modality;
    } else if (spec.to_node()) {
      connect(section, spec, edge);
    }
    return edge;
  }

  // Fills in a non-streaming edge to a node.
  void connect(std::uint32_t section, const EdgeSpec& spec, PlanEdge& edge) {
    const std::uint32_t target = node_sections_[plan_.plan_node_[spec.next_node]];
    const std::uint32_t loop = places_[section].loop;
    if (loop != CAIRN_NONE && !inside(target, loop)) {
      require_loop_output(section, loop, spec);
      return;  // the loop routes it, at its end
    }
    const std::uint32_t input = find_input(spec.next_node, spec.signal);
    std::uint32_t carrier = CAIRN_NONE;
    if (leads_back(section, target, carrier)) {
      if (carrier == CAIRN_NONE) {
        throw InvalidArgument(describe(section) + ": the edge for signal \"" + spec_.signals[spec.signal] +
                              "\" leads back to node \"" + spec_.nodes[spec.next_node].name +
                              "\" outside of every loop; put both into a loop.");
      }
      edge.kind = PlanEdgeKind::kLoopBack;
      edge.buffer = buffer_of(input, carrier);
    } else {
      edge.kind = PlanEdgeKind::kForward;
    }
    edge.input = input;
    flows_.push_back({section, input, carrier});
  }

  void require_loop_output(std::uint32_t section, std::uint32_t loop, const EdgeSpec& spec) const {
    const SectionSpec& outer = walk_.sections[loop_sections_[loop]];
    for (const auto* edges : {&outer.outputs, &outer.accumulated_outputs}) {
      for (const EdgeSpec& edge : *edges) {
        if (edge.signal == spec.signal && edge.next_node == spec.next_node) return;
      }
    }
    throw InvalidArgument(describe(section) + ": the edge for signal \"" + spec_.signals[spec.signal] +
                          "\" leaves its loop for node \"" + spec_.nodes[spec.next_node].name +
                          "\"; declare it in the loop's outputs or accumulated_outputs.");
  }

  std::uint32_t find_input(std::uint32_t model_node, std::uint32_t signal) const {
    const PlanNode& node = plan_.nodes[plan_.plan_node_[model_node]];
    for (std::uint32_t input = node.inputs.begin; input < node.inputs.end; ++input) {
      if (plan_.inputs[input].signal == signal) return input;
    }
    throw InternalError(where() + ": an edge leads to an input that was not checked.");
  }

  // Whether a section lies inside a plan loop.
  bool inside(std::uint32_t section, std::uint32_t loop) const {
    for (std::uint32_t outer = places_[section].loop; outer != CAIRN_NONE; outer = plan_.loops[outer].parent) {
      if (outer == loop) return true;
    }
    return false;
  }

  std::vector<std::uint32_t> path_from_root(std::uint32_t section) const {
    std::vector<std::uint32_t> path;
    for (; section != CAIRN_NONE; section = places_[section].parent) path.push_back(section);
    std::reverse(path.begin(), path.end());
    return path;
  }

  // Whether a value from `producer` reaches node section `target` only in the next iteration, and of which loop.
  bool leads_back(std::uint32_t producer, std::uint32_t target, std::uint32_t& carrier) const {
    const auto from = path_from_root(producer);
    const auto to = path_from_root(target);
    std::size_t common = 0;
    while (common < from.size() && common < to.size() && from[common] == to[common]) ++common;
    if (common == from.size()) {  // a node to itself, or a loop to a node inside it
      carrier = places_[producer].loop;
      return true;
    }
    // The two part below a group: only those have several children.
    const std::uint32_t group = from[common - 1];
    if (walk_.sections[group].kind == CAIRN_SECTION_PARALLEL) return false;
    if (places_[from[common]].position < places_[to[common]].position) return false;
    carrier = places_[group].loop;
    return true;
  }

  // Every output inside a loop whose signal the loop names is kept by the loop; every loop output has such a source.
  void connect_loop_outputs() {
    std::vector<bool> sourced(plan_.outputs.size(), false);
    const auto catch_outputs = [&](const PlanRange& outputs, std::uint32_t loop) {
      if (loop == CAIRN_NONE) return;
      for (std::uint32_t inner = outputs.begin; inner < outputs.end; ++inner) {
        for (std::uint32_t outer = plan_.loops[loop].outputs.begin; outer < plan_.loops[loop].outputs.end; ++outer) {
          if (plan_.outputs[outer].signal != plan_.outputs[inner].signal) continue;
          plan_.outputs[inner].caught_by = outer;
          sourced[outer] = true;
        }
      }
    };
    for (const PlanNode& node : plan_.nodes) catch_outputs(node.outputs, node.loop);
    for (const PlanLoop& loop : plan_.loops) catch_outputs(loop.outputs, loop.parent);
    for (std::size_t i = 0; i < plan_.loops.size(); ++i) {
      for (std::uint32_t output = plan_.loops[i].outputs.begin; output < plan_.loops[i].outputs.end; ++output) {
        if (!sourced[output]) {
          throw InvalidArgument(describe(loop_sections_[i]) + ": output signal \"" +
                                spec_.signals[plan_.outputs[output].signal] +
                                "\" is an output of no node or loop directly inside it.");
        }
      }
    }
  }

  // Loops around the node that bring this input again in every iteration: nothing inside such a loop feeds it, other
  // than by loops further inside.
  void add_externals(std::uint32_t input) {
    PlanRange range{static_cast<std::uint32_t>(plan_.external_inputs.size()), 0};
    const std::uint32_t first = plan_.nodes[plan_.plan_node_[plan_.inputs[input].node]].loop;
    for (std::uint32_t loop = first; loop != CAIRN_NONE; loop = plan_.loops[loop].parent) {
      const bool fed = std::any_of(flows_.begin(), flows_.end(), [&](const Flow& flow) {
        return flow.input == input && inside(flow.producer_section, loop) &&
               (flow.carrier == CAIRN_NONE || flow.carrier == loop);
      });
      if (fed) continue;
      plan_.loops[loop].externals.push_back(static_cast<std::uint32_t>(plan_.external_inputs.size()));
      plan_.external_inputs.push_back(input);
    }
    range.end = static_cast<std::uint32_t>(plan_.external_inputs.size());
    plan_.inputs[input].externals = range;
  }

  const ModelSpec& spec_;
  const WalkSpec& walk_;
  WalkPlan plan_;
  std::vector<Place> places_;                 // by section
  std::vector<std::uint32_t> node_sections_;  // by plan node
  std::vector<std::uint32_t> loop_sections_;  // by plan loop
  std::vector<Flow> flows_;
};

WalkPlan WalkPlan::compile(const ModelSpec& spec, std::uint32_t walk) {
  return WalkCompiler(spec, walk).compile();
}

std::span<const std::uint32_t> WalkPlan::input_signals(std::uint32_t model_node) const {
  const std::uint32_t node = find(model_node);
  if (node == CAIRN_NONE) return {};
  return {input_signals_.data() + nodes[node].inputs.begin, nodes[node].inputs.size()};
}

std::span<const std::uint32_t> WalkPlan::output_signals(std::uint32_t model_node) const {
  const std::uint32_t node = find(model_node);
  if (node == CAIRN_NONE) return {};
  return {output_signals_.data() + nodes[node].outputs.begin, nodes[node].outputs.size()};
}

std::uint32_t WalkPlan::section_flags(std::uint32_t model_node) const {
  const std::uint32_t node = find(model_node);
  return node == CAIRN_NONE ? 0 : nodes[node].flags;
}

}  // namespace cairn
