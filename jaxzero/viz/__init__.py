"""Pictures of trees and of learning. A leaf: nothing else in jaxzero imports it."""
