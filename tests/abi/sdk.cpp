// The whole SDK with a model and a node that override as little as they can, under the strictest warnings.
#include "cairn/cairn.hpp"

namespace {

class Node : public cairn::ARNodeSubmodule {
 public:
  cairn::NameToTensorList forward(const cairn::ModelInputsFromEngine&, const cairn::NamedTensors&) override {
    return {};
  }
};

class Model : public cairn::Model {
 public:
  static std::unique_ptr<cairn::Model> open(const cairn::OpenArgs&) { return std::make_unique<Model>(); }
  const cairn_model_desc* describe() override { return nullptr; }
  cairn::NodeHandle get_submodule(std::uint32_t) override { return cairn::make_node<Node>(); }
  cairn::ForwardPassArgs get_initial_forward_pass_args(const cairn::InitialArgs&) override { return {}; }
};

}  // namespace

CAIRN_PLUGIN(Model, "ai.cairn.test", "1.0", "Cairn", "", "", "");
