var e=`trunkline.draft.`,t=`trunkline.draft`,n=`name = "new experiment"
duration = "30 s"
repetitions = 3

[hosts]
a = {}
b = {}

[link.line]
between = ["a", "b"]
rate = "2 Mbit/s"
delay = "10 ms"

[flow.voice]
from = "a"
to = "b"
transport = "udp"
source = { kind = "voice", samples = 80 }     # 80 B every 10 ms
`;function r(){try{return Array.from({length:localStorage.length},(e,t)=>localStorage.key(t)??``).filter(t=>t.startsWith(e)).flatMap(e=>d(e.slice(16))??[]).toSorted((e,t)=>t.at-e.at)}catch{return[]}}function i(){return u()??r()[0]}async function a(){let e=l(),t=i();return e!==void 0&&await f(e)||o(),t}function o(){let e=`${Date.now().toString(36)}-${Math.floor(Math.random()*1e9).toString(36)}`;try{sessionStorage.setItem(t,e)}catch{}f(e)}function s(t){let n=l();if(n===void 0)return;let i=JSON.stringify({...t,at:Date.now()});try{localStorage.setItem(e+n,i);for(let{id:e}of r().slice(40))c(e)}catch{}}function c(t=l()){try{localStorage.removeItem(e+t)}catch{}}function l(){try{return sessionStorage.getItem(t)??void 0}catch{return}}function u(){let e=l();return e===void 0?void 0:d(e)}function d(t){try{let n=JSON.parse(localStorage.getItem(e+t)??`null`);return n&&typeof n.text==`string`&&typeof n.name==`string`?{at:0,...n,text:n.text,name:n.name,id:t}:void 0}catch{return}}function f(t){return`locks`in navigator?new Promise(n=>{navigator.locks.request(e+t,{ifAvailable:!0},e=>(n(e!==null),e===null?void 0:new Promise(()=>{})))}):Promise.resolve(!0)}function p(e,t){let n=URL.createObjectURL(new Blob([e],{type:`application/toml`})),r=document.createElement(`a`);r.href=n,r.download=t,r.click(),setTimeout(()=>URL.revokeObjectURL(n),1e4)}async function m(e){if(e.size>2e6)throw Error(`${e.name} is too large for an experiment file.`);let t=await e.text();if(t.includes(`\0`))throw Error(`${e.name} is not a text.`);return{text:t.replaceAll(`\r
`,`
`),name:e.name}}export{s as a,m as c,r as i,c as l,a as n,i as o,p as r,o as s,n as t,l as u};